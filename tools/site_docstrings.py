"""An extension of griffe for `make docs`: examples in docstrings are shown as Python sessions."""

from __future__ import annotations

import re
from typing import Any

import griffe

_SESSION = re.compile(r"^>>> .*?(?=^\s*$|\Z)", re.DOTALL | re.MULTILINE)


class Sessions(griffe.Extension):
    """Put lines from `>>>` up to an empty line into a block of code."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of a module, class or function as it is read."""
        if obj.docstring is not None:
            fenced = _SESSION.sub(
                lambda match: f"```pycon\n{match[0].rstrip()}\n```\n", obj.docstring.value
            )
            obj.docstring.value = fenced
