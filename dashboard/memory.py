"""Giving memory back: what is freed stays with the process until the C library is asked."""

from __future__ import annotations

import ctypes


def give_back() -> None:
    """Return freed memory to the system where the C library can (glibc); else do nothing."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        return
