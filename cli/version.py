"""The version of the installed distribution, which `pyproject.toml` alone states."""

from __future__ import annotations


def version() -> str:
    """Return the version; empty in a checkout that is not installed."""
    from importlib import metadata

    try:
        return metadata.version("tilescope")
    except metadata.PackageNotFoundError:
        return ""
