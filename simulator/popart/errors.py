"""What PopART raises.

PoplarError
  popart_exception      a model, option or argument that cannot be used; names file, node, tensor
"""

from __future__ import annotations

from simulator.graph.errors import PoplarError


class popart_exception(PoplarError):  # noqa: N801, N818 - PopART's name
    """A model that cannot be imported or run, or a wrong argument of PopART's functions."""
