"""What the simulator raises.

RuntimeError
  PoplarError               a wrong program, option or argument
    GraphConnectionError    a vertex field joined to the wrong tensor, or to none
    TileMappingError        a variable or vertex on no tile, or on one that is not there
    HostAccessError         a stream or host access that does not fit its array
    InvalidOptionError      an option that is not known, or a value that it cannot have
    graph_memory_allocation_error   a program that needs more memory than a tile has
    MissingPackageError     a front end whose package is not installed; also an ImportError
    poplibs_error           an operation of the libraries that its operands do not allow
      NoPlanError           a product or convolution of which no plan fits on a tile
"""

from __future__ import annotations

from collections.abc import Callable


class PoplarError(RuntimeError):
    """A program that Poplar would refuse; one line names the variable, vertex, tile and field."""

    def __init__(self, message: object = "") -> None:
        super().__init__(one_line(str(message)))


def one_line(text: str) -> str:
    """Join the lines of a text, such as that of a matrix inside a message."""
    return " ".join(line.strip() for line in text.splitlines())


class GraphConnectionError(PoplarError):
    """A vertex field is unknown, unconnected, of the wrong type or length, or written twice."""


class TileMappingError(PoplarError):
    """A variable or vertex is on no tile, or on a tile that the target does not have."""


class HostAccessError(PoplarError):
    """A stream or host access is unknown, unconnected or does not fit its array."""


class InvalidOptionError(PoplarError):
    """An option is unknown, or its value is not one that it can have."""


class MissingPackageError(PoplarError, ImportError):
    """A front end needs a package that is not installed; the message says how to install it."""


class application_runtime_error(PoplarError):  # noqa: N801, N818 - Poplar's name
    """A program ended its run itself: by Abort, AbortOnCondition or ErrorProgram."""


class poplibs_error(PoplarError):  # noqa: N801, N818 - PopLibs' name
    """A library operation whose operands it does not take; the message begins with its name."""


class NoPlanError(poplibs_error):
    """A product or convolution whose smallest plan needs more temporary data than a tile has."""


class graph_memory_allocation_error(PoplarError):  # noqa: N801, N818 - Poplar's name
    """A program needs more memory than its tiles have, and `debug.allowOutOfMemory` is false.

    `graphProfilePath` is the report's directory, empty when none was written.
    """

    def __init__(
        self,
        message: str,
        graphProfilePath: str = "",
        graphProfile: Callable[[], dict[str, object]] = dict,
    ) -> None:
        super().__init__(message)
        self.graphProfilePath = graphProfilePath
        self._graphProfile = graphProfile

    @property
    def graphProfile(self) -> dict[str, object]:
        """Return the graph profile of the program, as `Engine.getGraphProfile` does."""
        return self._graphProfile()
