"""Names that look like markup, which the tests put into the report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

VARIABLE = "<script>alert('x')</script>"
PROGRAM = "<b onclick=alert(1)>y</b>"
LABEL = "poplin::Reduce<float,float>"

Opener = Callable[..., Any]
