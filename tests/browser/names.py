"""Names that look like markup, which the tests put into the reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

VARIABLE = "<script>alert('x')</script>"
PROGRAM = "<b onclick=alert(1)>y</b>"
LABEL = "poplin::Reduce<float,float>"
MARKUP = "<img src=x onerror=alert(1)><b>bold</b>&amp;"
LONG = "a_layer/" * 12_500  # 100 kB, of which the server sends the ends

Opener = Callable[..., Any]
