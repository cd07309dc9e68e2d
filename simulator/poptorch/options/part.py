"""What every group of options has: setters that can be chained, refusals, names without effect."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

from simulator.poptorch.errors import Error
from simulator.poptorch.log import logger

OFF: tuple[Any, ...] = (False, None, 0, "", {}, [])


class Part:
    """A group of options. A setter returns the group, so that calls can be chained.

    `DEFAULTS` are the values that count here, `TAKEN` the setters that tune Graphcore's compiler
    alone and change nothing, `REFUSED` those of what cannot be done, with the reason.
    """

    LABEL: ClassVar[str] = "Options"
    DEFAULTS: ClassVar[Mapping[str, Any]] = {}
    TAKEN: ClassVar[tuple[str, ...]] = ()
    REFUSED: ClassVar[Mapping[str, str]] = {}

    def __init__(self) -> None:
        self._values: dict[str, Any] = copy.deepcopy(dict(self.DEFAULTS))

    def _set(self, **values: object) -> Self:
        self._values.update(values)
        return self

    def _count(self, setter: str, number: object) -> int:
        """Return a whole number of at least 1; raises Error naming the setter."""
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise Error(f"{self.LABEL}.{setter}: {number!r}; a whole number of 1 or more is needed")
        return number

    def value(self, name: str) -> Any:
        """Return a value that was set, or its default."""
        return self._values[name]

    def toDict(self) -> dict[str, object]:
        """Return all values by name."""
        return dict(self._values)

    def __getattr__(self, name: str) -> Callable[..., Part]:
        if name in type(self).TAKEN:
            return self._taken(name)
        if name in type(self).REFUSED:
            return self._refused(name)
        if name.startswith("__"):
            raise AttributeError(name)
        names = [n for n in (*dir(type(self)), *self.TAKEN, *self.REFUSED) if n[0] != "_"]
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(names))}"
        raise AttributeError(f"{self.LABEL} has no option {name!r}; {hint}")

    def _taken(self, name: str) -> Callable[..., Part]:
        def setter(*arguments: object, **named: object) -> Part:
            text = ", ".join(map(repr, (*arguments, *named.values())))
            logger.info(f"{self.LABEL}.{name}({text}): has no effect here")
            return self

        return setter

    def _refused(self, name: str) -> Callable[..., Part]:
        def setter(*arguments: object, **named: object) -> Part:
            values = (*arguments, *named.values())
            if values and all(one in OFF for one in values[:1]):
                return self
            raise Error(
                f"{self.LABEL}.{name}({', '.join(map(repr, values))}): {self.REFUSED[name]}"
            )

        return setter
