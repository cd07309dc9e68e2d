"""What PopART raises.

PoplarError
  popart_exception      a model, option or argument that cannot be used; names file, node, tensor
    wrong_arguments     arguments that a method of the builder does not take; also a TypeError
    unknown_option      an option that there is not; also an AttributeError
    unreadable_model    a file or text that is no model
"""

from __future__ import annotations

from simulator.graph.errors import PoplarError


class popart_exception(PoplarError):  # noqa: N801, N818 - PopART's name
    """A model that cannot be imported or run, or a wrong argument of PopART's functions."""


class wrong_arguments(popart_exception, TypeError):  # noqa: N801, N818 - as its base
    """Arguments that a method of the builder does not take: Python's TypeError, as in PopART."""


class unknown_option(popart_exception, AttributeError):  # noqa: N801, N818 - as its base
    """An option that there is not: Python's AttributeError, as in PopART."""


class unreadable_model(popart_exception):  # noqa: N801, N818 - as its base
    """A file or text that is no model."""


def refused_call(method: str, signature: str) -> wrong_arguments:
    """Return the error for a method of the builder that does not take what a call has."""
    return wrong_arguments(
        f"{method}(): incompatible function arguments. The following argument types are "
        f"supported: {method}({signature})"
    )
