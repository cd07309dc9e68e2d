"""The one way to a scheduler of Dask, for work on many reports and for explorations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pva.errors import MissingPackageError, PvaError

if TYPE_CHECKING:
    from distributed import Client

INSTALL = "pip install 'tilescope[distributed]'"
SECONDS = 10.0  # until a scheduler must have answered


def connected(address: str) -> Client:
    """Return a client of a scheduler, as in tcp://host:8786; raises PvaError."""
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingPackageError(address, f"needs the package {error.name}", INSTALL) from None
    try:
        return Client(address, timeout=SECONDS)
    except (OSError, ValueError, TypeError) as error:
        problem = f"no Dask scheduler answers ({error})".partition("\n")[0]
        raise PvaError(address, problem, "start one: dask scheduler") from None
