"""The part that every event passes through: in C where it was built, in Python elsewhere."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

accelerated = False

if TYPE_CHECKING:
    from pvti.spans import Channel, Span, Spans, checksums
else:
    try:
        # For tests and comparisons: the two behave alike.
        if os.environ.get("PVTI_ACCELERATOR") == "0":
            raise ImportError
        from pvti._accelerator import INTERFACE, Channel, Span, Spans, checksums

        if INTERFACE != 4:  # built from the source of another version
            raise ImportError
        accelerated = True
    except ImportError:
        from pvti.spans import Channel, Span, Spans, checksums

__all__ = ["Channel", "Span", "Spans", "accelerated", "checksums"]
