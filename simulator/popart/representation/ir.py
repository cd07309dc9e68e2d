"""The intermediate representation: a model's nodes in order, with all types and shapes known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from simulator.graph.types import Array
from simulator.popart.representation.origins import Origin
from simulator.popart.representation.tensor_info import TensorInfo

ONNX, GRAPHCORE = "ai.onnx", "ai.graphcore"
CLASSICAL, TRAINING = "ai.onnx.ml", "ai.onnx.preview.training"

# By which PopART's builder notes where a node goes, and how it is planned.
GRAPH_NAME = "graph"  # of a builder whose graph has no name
IPU_ATTRIBUTE, STAGE_ATTRIBUTE = "__ipu_number", "__pipeline_stage"
PHASE_ATTRIBUTE = "__execution_phase"
SERIAL_MODE, SERIAL_FACTOR = "__serialize_matmul_mode", "__serialize_matmul_factor"
EXCLUDED_ATTRIBUTE = "__exclude_patterns"  # patterns that leave a node alone
RECOMPUTE_ATTRIBUTE = "__recompute_output_in_backward_pass"
TORCH_ATTRIBUTE = "__pytorch"  # of a norm: batch statistics and running ones by PyTorch's rules
PARTIALS_ATTRIBUTE, MEMORY_ATTRIBUTE = "__partials_type", "__available_memory"
DITHERING_ATTRIBUTE = "__enable_conv_dithering"
GROUP_ATTRIBUTE = "__collectiveCommGroup"  # of replicas that do an operation together
SLICES_ATTRIBUTE = "__popart_slices"  # of a Scan: slices keep their axis, outputs are joined


class Bound(NamedTuple):
    """The tensor that says how many elements count, by -1 behind them, and along which axis.

    `axis` is that of the tensor that is bounded.
    """

    root: str
    root_axis: int
    axis: int


@dataclass(frozen=True, slots=True)
class Node:
    """An operator with its tensors; "" stands for an optional tensor that is not there.

    `version` is that of the operator: the first opset that has it as it is. `origin` is where a
    model of PyTorch has it from.
    """

    name: str
    domain: str
    operator: str
    version: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    origin: Origin | None = field(default=None, compare=False)

    @property
    def kind(self) -> str:
        """Return domain, operator and version as the user guide writes them."""
        return f"{self.domain}.{self.operator}-{self.version}"

    @property
    def key(self) -> tuple[str, str]:
        """Return what the table of operators is keyed by."""
        return self.domain, self.operator

    @property
    def branches(self) -> list[Ir]:
        """Return the graphs that an If chooses from."""
        names = ("then_branch", "else_branch")
        return [self.attributes[name] for name in names if name in self.attributes]

    @property
    def graphs(self) -> list[Ir]:
        """Return the graphs within: branches, or the body of a Loop."""
        return [value for value in self.attributes.values() if isinstance(value, Ir)]

    @property
    def reads(self) -> tuple[str, ...]:
        """Name the tensors that the node and the graphs within read."""
        return (*self.inputs, *(name for graph in self.graphs for name in graph.captured()))

    def __str__(self) -> str:
        where = f" of {self.origin}" if self.origin else ""
        return f"node {self.name!r} ({self.kind}){where}"


@dataclass(slots=True)
class Ir:
    """A graph: constants are known for good, weights can change, inputs come with every batch.

    A weight is None when its values are not there (they are not needed to find memory and cycles).
    `bounds` are of tensors that are as long as they can be, and not all of which counts.
    `sequences` are the tensors that each is made of, `absent` the optional values without any.
    """

    name: str
    nodes: list[Node] = field(default_factory=list)
    infos: dict[str, TensorInfo] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)
    weights: dict[str, Array | None] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    bounds: dict[str, Bound] = field(default_factory=dict)
    sequences: dict[str, tuple[str, ...]] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)

    def has(self, name: str) -> bool:
        """Return whether a tensor, a sequence or an optional value is known."""
        return name in self.infos or name in self.sequences or name in self.absent

    def known(self, name: str) -> Array | None:
        """Return the values of a tensor that are known before it runs, else None."""
        return self.constants[name] if name in self.constants else self.weights.get(name)

    def let_go_of_weights(self) -> None:
        """Free the values of all weights, those of graphs within too."""
        self.weights = dict.fromkeys(self.weights)
        for node in self.nodes:
            for graph in node.graphs:
                graph.let_go_of_weights()

    def captured(self) -> list[str]:
        """Name what a graph within a node reads of that around it."""
        produced = {*self.inputs, *(name for node in self.nodes for name in node.outputs)}
        read = [*(name for node in self.nodes for name in node.reads), *self.outputs]
        return [name for name in dict.fromkeys(read) if name and name not in produced]

    def consumers(self) -> dict[str, list[tuple[Node, int]]]:
        """Return, for each tensor, the nodes that read it and as which input."""
        readers: dict[str, list[tuple[Node, int]]] = {}
        for node in self.nodes:
            for place, name in enumerate(node.inputs):
                if name:
                    readers.setdefault(name, []).append((node, place))
        return readers
