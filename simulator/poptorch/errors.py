"""What PopTorch raises.

PoplarError
  Error                 a module, input or option that cannot be used; names module path and line
"""

from __future__ import annotations

from simulator.graph.errors import PoplarError


class Error(PoplarError):
    """A module that cannot be exported or run, or a wrong argument of PopTorch's functions."""
