"""The name under which libpva's extension module is known: all public names of `pva`."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    import pva

    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(pva, name)
