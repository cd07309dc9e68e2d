"""The operators of a domain as methods of a builder."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from simulator.popart.errors import popart_exception, refused_call
from simulator.popart.logging import log
from simulator.popart.model_builder.forms import by_name, of_convolutions, type_number
from simulator.popart.operators.signatures import Signature, signatures
from simulator.popart.representation.ir import GROUP_ATTRIBUTE, ONNX
from simulator.popart.representation.tensor_info import ELEMENT_TYPES

NAMES = ("debugContext", "debug_context", "debugPrefix")  # keywords of a node's own name
ALIASES = {"outputFullSequence": "output_full_sequence", "commGroup": GROUP_ATTRIBUTE}
PRINTED = ("summariseThreshold", "edgeItems", "maxLineWidth", "digits", "floatFormat", "separator",
           "openBracket", "closeBracket")  # of a PrintTensor: how numbers are written  # fmt: skip


class Domain:
    """The operators of a domain as methods: inputs, attributes by name, a name for the node."""

    def __init__(self, add: Callable[..., Any], domain: str, opset: int) -> None:
        self._add, self._domain, self._opset = add, domain, opset
        self._methods = signatures(domain, opset)

    def __getattr__(self, method: str) -> Any:
        if method.startswith("_") or method not in self._methods:
            near = difflib.get_close_matches(method, self._methods, n=1)
            hint = f"did you mean {near[0]}?" if near else "see dir()"
            raise AttributeError(f"{self._domain} has no operator {method!r}; {hint}")
        signature = self._methods[method]

        def add(*positional: object, args: object = None, **named: object) -> str | list[str]:
            if args is None and positional and signature.most:  # inputs come first
                args, *positional = positional  # type: ignore[assignment]
            names = (*signature.positional, "debugPrefix")
            if (args is None and signature.least) or not isinstance(args, Iterable | None):
                raise refused_call(method, ", ".join(("args: list of tensors", *names)))
            if signature.operator == "PrintTensor":  # whose name stands before its title
                names = ("print_gradient", "debugPrefix", "title", *PRINTED)
            values = by_name(names, signature.kinds, positional, method)
            values |= {ALIASES.get(name, name): value for name, value in named.items()}
            return self._added(signature, method, args or [], values)

        return add

    def _added(
        self, signature: Signature, method: str, args: Any, values: dict[str, Any]
    ) -> str | list[str]:
        """Add a node; with `num_outputs` there is a list, also of one."""
        log("builder", "DEBUG", f"Adding {self._domain}.{signature.operator} to builder")
        label = [str(one) for name in NAMES if (one := values.pop(name, None))]
        count = values.pop("num_outputs", None)
        if signature.operator == "MultiConv":
            count = len(args)
            args, values = of_convolutions(args, values)
        _check_random(signature.operator, values, method)
        if signature.operator == "PrintTensor":
            values = {name: value for name, value in values.items() if name not in PRINTED}
        args = [args] if isinstance(args, str) else args
        _check_outputs(signature, count)
        output = self._add(
            self._domain, signature, list(args), values, next(iter(label), ""),
            _count(count, method),
        )  # fmt: skip
        return [output] if count is not None and isinstance(output, str) else output

    def constant(self, value: object, debugContext: str = "", debugPrefix: str = "") -> str:
        """Add a constant with its values; return its name."""
        signature = Signature("Constant", ("value",))
        values = {"value": np.asarray(value)}
        name = str(debugContext or debugPrefix)
        output: str = self._add(ONNX, signature, [], values, name, 1)
        return output

    def __repr__(self) -> str:
        return f"Ai{self._domain.removeprefix('ai.').capitalize()}{self._opset}"

    def __dir__(self) -> list[str]:
        return sorted(self._methods)


def _count(count: object, method: str) -> int:
    """Return the number of outputs that are asked for; 1 where none is."""
    if count is None:
        return 1
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise popart_exception(f"{method}: num_outputs is {count!r}; at least 1 is needed")
    return count


def _check_outputs(signature: Signature, count: object) -> None:
    """Raise popart_exception for more outputs than an operator has."""
    if isinstance(count, int) and count > signature.most_outputs:
        raise popart_exception(
            f"{signature.operator} has an invalid number of outputs: {count}; "
            f"at most {signature.most_outputs} can be"
        )


def _check_random(operator: str, values: dict[str, object], method: str) -> None:
    """Raise popart_exception for a seed of one node, or a type that the device does not draw."""
    if not operator.startswith("Random"):
        return
    if values.get("seed") is not None:
        raise popart_exception(
            f"{method}: Optional seed attribute is not supported. "
            "Use session::setRandomSeed instead."
        )
    dtype = values.get("dtype")
    if dtype is not None and type_number(dtype, method) == ELEMENT_TYPES["DOUBLE"].onnx:
        raise popart_exception(f"{method}: The data type DOUBLE is not supported in Poplar")
