"""Completion in IPython, which by itself looks into no object whose class it does not know.

Told of ours, it completes `report.execution.steps[0].` as it does with lists. Jedi, which it asks
where that is installed, never looks behind `[0]` of a class that is no list itself; there IPython
completes as it does without Jedi.
"""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from typing import Any

BEHIND_ITEM = re.compile(r"\][\w.]*\.\w*$")


def complete(kind: type, *, items: bool = False) -> None:
    """Let IPython evaluate the attributes of a class, or its items, when it completes."""
    if "IPython.core.completer" not in sys.modules:  # nobody types
        return
    with suppress(ImportError, AttributeError, KeyError):  # another version, which does as it will
        from IPython.core.guarded_eval import EVALUATION_POLICIES

        policy: Any = EVALUATION_POLICIES["limited"]
        allowed = policy.allowed_getitem if items else policy.allowed_getattr
        allowed.add(kind)


def complete_behind_items() -> None:
    """Let IPython complete behind `[0]` without Jedi too, in a session that runs."""
    if "IPython.core.completer" not in sys.modules:
        return
    with suppress(ImportError, AttributeError):
        from IPython import get_ipython
        from IPython.core.completer import context_matcher

        completer = get_ipython().Completer

        @context_matcher(identifier="pva.behind_items")  # type: ignore[untyped-decorator]
        def behind_items(context: Any) -> Any:
            if completer.use_jedi and BEHIND_ITEM.search(context.text_until_cursor):
                return completer.python_matcher(context)
            return {"completions": []}

        completer.custom_matchers.append(behind_items)
