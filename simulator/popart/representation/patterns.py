"""Simplifications of the graph before it is lowered; each has a name and can be switched off."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from enum import Enum
from typing import TypeAlias

from simulator.popart.errors import popart_exception
from simulator.popart.logging import enabled, log
from simulator.popart.representation.ir import EXCLUDED_ATTRIBUTE, GRAPHCORE, ONNX, Ir, Node
from simulator.popart.representation.mandatory_patterns import MANDATORY


class PatternsLevel(Enum):
    """A set of patterns."""

    NoPatterns = "NoPatterns"
    Minimal = "Minimal"
    Default = "Default"
    All = "All"


def _single(node: Node, ir: Ir, training: bool) -> bool:
    """Return whether a node is a Concat, Sum, Mean, Max or Min of one tensor."""
    foldable = {(ONNX, name) for name in ("Concat", "Sum", "Mean", "Max", "Min")}
    return node.key in foldable and len(node.inputs) == 1


def _idle(node: Node, ir: Ir, training: bool) -> bool:
    """Return what changes nothing: a dropout that is not trained, a view or cast to what it has.

    So is the loss of a scalar.
    """
    if node.key == (GRAPHCORE, "IdentityLoss"):
        return not ir.infos[node.inputs[0]].dims
    if node.domain != ONNX:
        return False
    if node.operator == "Dropout":
        return not training and len(node.inputs) < 3 and not any(node.outputs[1:])
    if node.operator not in ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Cast"):
        return False
    return bool(node.outputs[0]) and ir.infos[node.inputs[0]] == ir.infos[node.outputs[0]]


Test: TypeAlias = Callable[[Node, Ir, bool], bool]
# Nodes that become an Identity, by the names of PopART's patterns; PostNRepl removes them then.
TO_IDENTITY: dict[str, Test] = {"PreUniRepl": _single, "OpToIdentity": _idle}
REMOVE = "PostNRepl"
SOFTMAX = "SoftmaxGradDirect"
# Random numbers like a tensor, which become plain ones, by the names of PopART's patterns.
LIKE = {
    (ONNX, "RandomNormalLike"): "RandomNormalLikeOpPattern",
    (ONNX, "RandomUniformLike"): "RandomUniformLikeOpPattern",
}
NAMES = (*TO_IDENTITY, REMOVE, SOFTMAX, *LIKE.values())
# Patterns of PopART that make gradients and layers of simpler nodes; here nothing needs them.
WITHOUT_EFFECT = (
    "AbsGradOp", "AllReduceToIdentity", "AtanhGradOp", "ConvFlipWeightsGradOp", "ExpandCast",
    "LoopScanOut", "PadSum", "RemoveUnnecessaryLossGradCast", "ScanToLoop", "Slice2SliceSubsample",
    "SoftMaxGradDirect", "TransposeToIdentityOrReshapePattern", "ZerosLikeOpPattern",
    "Atan2Arg0GradOp", "Atan2Arg1GradOp", "ConvDataGrad",
    "ConvFlipWeightsDoubleFlip", "ConvTranspose", "CosGradOp", "CoshOp",
    "DecomposeBinaryConstScalar", "DivArg0GradOp", "DivArg1GradOp", "ExpGradOp", "Expm1GradOp",
    "FmodArg0GradOp", "GemmDecomposition", "InPlace", "InitAccumulate", "LSTMOp",
    "LambSerialisedWeight", "Log1pGradOp", "LogGradOp", "MatMulLhsGradOp", "MatMulOp",
    "MatMulRhsGradOp", "MulArgGradOp", "NegativeOneScale", "NlllWithSoftmaxGradDirect",
    "OpToReshape", "PackedDataBlock", "PowArg0GradOp", "PowArg1GradOp",
    "ReciprocalGradOp", "SinGradOp",
    "SparseAccumulate", "SplitGather", "SplitGradOpToConcat", "SplitOp", "SqrtGradOp",
    "SubtractArg1GradOp", "SumToAdd", "TanToSinOverCos", "TanhToSinhOverCosh", "TiedGather",
    "TiedGatherAccumulate", "UpdateInplacePrioritiesForIpu", "UpsampleToResize",
    "ViewSimplifyPattern", "ZeroDelta",
)  # fmt: skip
_LEVELS = {
    PatternsLevel.NoPatterns: (),
    PatternsLevel.Minimal: (SOFTMAX,),
    PatternsLevel.Default: NAMES,
    PatternsLevel.All: NAMES,
}


class Patterns:
    """The patterns that are applied: a level, or their names; the default set if none is given.

    >>> patterns = Patterns(["OpToIdentity"])
    >>> patterns.OpToIdentity, patterns.PostNRepl
    (True, False)
    """

    def __init__(
        self, patterns: PatternsLevel | Iterable[str] | Mapping[str, bool] = PatternsLevel.Default
    ) -> None:
        self._on: dict[str, bool] = dict.fromkeys(NAMES, False)
        every = isinstance(patterns, Mapping) or patterns in (
            PatternsLevel.Default,
            PatternsLevel.All,
        )
        self._idle: dict[str, bool] = dict.fromkeys(WITHOUT_EFFECT, every)
        if patterns is PatternsLevel.Minimal:
            self._idle |= dict.fromkeys(MANDATORY, True)
        if isinstance(patterns, Mapping):
            self._on = dict.fromkeys(NAMES, True)
            pairs = list(patterns.items())
        else:
            names = _LEVELS[patterns] if isinstance(patterns, PatternsLevel) else patterns
            pairs = [(name, True) for name in names]
        for name, on in pairs:
            self.enablePattern(name, on)

    def enablePattern(self, name: str, enabled: bool = True) -> Patterns:
        """Switch a pattern on or off.

        >>> Patterns().enablePattern("PostNRepl", False).PostNRepl
        False
        """
        if name in WITHOUT_EFFECT:
            log("pattern", "INFO", f"Patterns: {name} has no effect here")
            self._idle[name] = bool(enabled)
            return self
        if name not in self._on:
            raise popart_exception(f"Patterns: no pattern {name!r}; known are {', '.join(NAMES)}")
        self._on[name] = bool(enabled)
        return self

    def enableRuntimeAsserts(self, enabled: bool) -> Patterns:
        """Take whether PopART shall ask for the patterns that it needs; here none is.

        >>> Patterns().enableRuntimeAsserts(False).isPatternEnabled("PostNRepl")
        True
        """
        return self

    def __setattr__(self, name: str, value: object) -> None:
        """Switch a pattern by its name: patterns.OpToIdentity = False."""
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        else:
            self.enablePattern(name, bool(value))

    def __getattr__(self, name: str) -> bool:
        """Return whether a pattern is on: patterns.OpToIdentity."""
        if name.startswith("_") or name not in {**self._on, **self._idle}:
            raise AttributeError(f"Patterns has no {name!r}; known are {', '.join(NAMES)}")
        return self.isPatternEnabled(name)

    def isPatternEnabled(self, name: str) -> bool:
        """Return whether a pattern is on.

        >>> patterns = Patterns(["OpToIdentity"])
        >>> patterns.isPatternEnabled("OpToIdentity")
        True
        """
        return self._on.get(name, self._idle.get(name, False))

    @staticmethod
    def getAllPreAliasPatternNames() -> list[str]:
        """List the patterns that change anything here.

        >>> Patterns.getAllPreAliasPatternNames()[:2]
        ['PreUniRepl', 'OpToIdentity']
        """
        return list(NAMES)

    def __repr__(self) -> str:
        return f"Patterns({[name for name, on in self._on.items() if on]})"


def apply(ir: Ir, patterns: Patterns, protected: Iterable[str], *, training: bool) -> None:
    """Simplify a graph; tensors that are `protected` stay by their names."""
    tests = [(name, t) for name, t in TO_IDENTITY.items() if patterns.isPatternEnabled(name)]
    nodes = []
    for node in ir.nodes:
        excluded = _excluded(node)
        fitting = (n for n, t in tests if t(node, ir, training))
        name = next((n for n in fitting if n not in excluded), "")
        if name:
            _say(name, node)
            node = _identity(node)
        elif node.key in LIKE and patterns.isPatternEnabled(LIKE[node.key]):
            # Only type and shape of the input count.
            node = replace(node, operator=node.operator.removesuffix("Like"), inputs=())
        nodes.append(node)
    ir.nodes = nodes
    if patterns.isPatternEnabled(REMOVE):
        _remove_identities(ir, {*protected, *ir.outputs})


def _excluded(node: Node) -> list[str]:
    """Return the patterns that leave a node alone; raises popart_exception for what is none."""
    excluded = [str(name) for name in node.attributes.get(EXCLUDED_ATTRIBUTE, ())]
    for name in excluded:
        if name not in (*NAMES, *WITHOUT_EFFECT, *MANDATORY):
            raise popart_exception(
                f"Invalid pattern name '{name}' in Op::excludePatterns, of {node}"
            )
    return excluded


def _identity(node: Node) -> Node:
    return replace(
        node, domain=ONNX, operator="Identity", version=1, inputs=node.inputs[:1],
        outputs=node.outputs[:1],
        attributes={name: v for name, v in node.attributes.items() if name.startswith("__")},
    )  # fmt: skip


def _remove_identities(ir: Ir, protected: set[str]) -> None:
    """Let readers of an Identity read its input."""
    inner = any(isinstance(v, Ir) for node in ir.nodes for v in node.attributes.values())
    if inner:
        return  # a branch may read the tensor by its name
    instead: dict[str, str] = {}
    nodes = []
    for node in ir.nodes:
        node = replace(node, inputs=tuple(instead.get(name, name) for name in node.inputs))
        is_removable = node.key == (ONNX, "Identity") and REMOVE not in _excluded(node)
        if is_removable and node.outputs[0] not in protected:
            _say(REMOVE, node)
            instead[node.outputs[0]] = node.inputs[0]
        else:
            nodes.append(node)
    ir.nodes = nodes


def _say(pattern: str, node: Node) -> None:
    if enabled("pattern", "DEBUG"):
        log("pattern", "DEBUG", f"{pattern} applied to {node}")
