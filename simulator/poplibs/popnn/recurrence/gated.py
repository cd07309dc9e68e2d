"""Functions that add the tensors of a layer of gated units, LSTM or GRU: they follow from its row.

createInput = gated.input_of(LSTM)
createWeightsKernel, createWeightsBiases, createWeights = gated.weights_of(LSTM, LstmWeights)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Generic, ParamSpec, Protocol, TypeVar

from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.logging import library_call
from simulator.poplibs.poplin import PlanningCache
from simulator.poplibs.popnn import rnn
from simulator.poplibs.popnn.rnn import Options, RnnParams
from simulator.poplibs.popops.regions import debug_name


class GatedParams(Protocol):
    """The sizes of a layer, and the order of its units in weights and biases."""

    cellOrder: Any

    @property
    def rnn(self) -> RnnParams:
        """Return the sizes."""


# The examples of the functions, by their names: of each layer its own.
_TRIAL = """

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> graph = Trial().graph
    >>> sizes = 4, 5, [2, 3]  # samples, steps, inputs and outputs
    >>> params = popnn.{layer}.{params}(poplar.FLOAT, *sizes)
"""
_EXAMPLES = {
    "createInput": """    >>> popnn.{layer}.createInput(graph, params).shape
    (5, 4, 2)
    """,
    "createWeightsKernel": """    >>> kernel = popnn.{layer}.createWeightsKernel(graph, params)
    >>> [part.shape for part in kernel]
    [({units}, 2, 3), ({units}, 3, 3)]
    """,
    "createWeightsBiases": """    >>> popnn.{layer}.createWeightsBiases(graph, params).shape
    ({units}, 3)
    """,
    "createWeights": """    >>> [part.shape for part in popnn.{layer}.createWeights(graph, params)]
    [({units}, 2, 3), ({units}, 3, 3), ({units}, 3)]
    """,
}
_STATE = """    >>> popnn.{layer}.{name}(graph, params).shape
    (4, 3)
    """

P = TypeVar("P", bound=GatedParams)
W = TypeVar("W")
P_contra = TypeVar("P_contra", bound=GatedParams, contravariant=True)
Q = ParamSpec("Q")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Layer(Generic[P]):
    """A kind of layer.

    `products` are the numbers of units whose sums one product gives, `bias_shape` is that of the
    biases without the outputs. `sorts` tells whether the kernel is laid out in the usual order of
    the units, and handed out in that of the layer.
    """

    name: str
    units: type[IntEnum]
    products: Callable[[P], list[int]]
    bias_shape: Callable[[P], list[int]]
    sorts: bool = False


class AddsInput(Protocol[P_contra]):
    """Adds the inputs of all steps."""

    def __call__(
        self,
        graph: Graph,
        params: P_contra,
        debugContext: str = "",
        options: Options = None,
        planningCache: PlanningCache | None = None,
    ) -> Tensor: ...


class Adds(Protocol[P_contra, R_co]):
    """Adds a state, weights or biases."""

    def __call__(
        self,
        graph: Graph,
        params: P_contra,
        debugContext: str = "",
        options: Options = None,
        cache: PlanningCache | None = None,
    ) -> R_co: ...


def function_of(layer: Layer[P]) -> Callable[[Callable[Q, R]], Callable[Q, R]]:
    """Return what adds an example to the text of a layer's function, and logs its calls."""

    def decorate(function: Callable[Q, R]) -> Callable[Q, R]:
        name, kind = function.__name__, f"{layer.name.title()}Params"
        example = f"{_TRIAL}{_EXAMPLES.get(name, _STATE)}".format(
            layer=layer.name, params=kind, units=len(layer.units), name=name
        )
        function.__doc__ = f"{function.__doc__ or ''}{example}"
        return library_call("POPNN")(function)

    return decorate


def input_of(layer: Layer[P]) -> AddsInput[P]:
    """Return the function that adds the inputs of a layer."""

    @function_of(layer)
    def createInput(
        graph: Graph,
        params: P,
        debugContext: str = "",
        options: Options = None,
        planningCache: PlanningCache | None = None,
    ) -> Tensor:
        """Add the inputs [timeSteps, batch, inputs]."""
        name = debug_name(debugContext, "input")
        return rnn.create_input(graph, params.rnn, len(layer.units), name, options)

    return createInput


def state_of(layer: Layer[P], name: str, variable: str) -> Adds[P, Tensor]:
    """Return the function of this name that adds a state of a layer, a variable."""

    def create(
        graph: Graph,
        params: P,
        debugContext: str = "",
        options: Options = None,
        cache: PlanningCache | None = None,
    ) -> Tensor:
        """Add what a layer has before the first step, [batch, outputs]."""
        return rnn.create_state(graph, params.rnn, debug_name(debugContext, variable))

    create.__name__ = create.__qualname__ = name
    return function_of(layer)(create)


def weights_of(
    layer: Layer[P], weights: Callable[[Tensor, Tensor, Tensor], W]
) -> tuple[Adds[P, tuple[Tensor, Tensor]], Adds[P, Tensor], Adds[P, W]]:
    """Return the functions that add the kernel of a layer, its biases, and both as `weights`."""

    @function_of(layer)
    def createWeightsKernel(
        graph: Graph,
        params: P,
        debugContext: str = "",
        options: Options = None,
        cache: PlanningCache | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Add the weights of inputs and outputs, laid out for the products of the steps."""
        products, name = layer.products(params), debugContext or layer.name
        inputs, outputs = rnn.create_kernel(graph, params.rnn, products, name, options)
        if not layer.sorts:
            return inputs, outputs
        order = [layer.units(unit) for unit in params.cellOrder]
        return in_order(inputs, order), in_order(outputs, order)

    @function_of(layer)
    def createWeightsBiases(
        graph: Graph,
        params: P,
        debugContext: str = "",
        options: Options = None,
        cache: PlanningCache | None = None,
    ) -> Tensor:
        """Add the biases [units, outputs], in the shape that the layer has them in."""
        name = debug_name(debugContext, "biases")
        return rnn.create_biases(graph, params.rnn, layer.bias_shape(params), name)

    @function_of(layer)
    def createWeights(
        graph: Graph,
        params: P,
        debugContext: str = "",
        options: Options = None,
        cache: PlanningCache | None = None,
    ) -> W:
        """Add all weights and biases."""
        kernel = createWeightsKernel(graph, params, debugContext, options, cache)
        biases = createWeightsBiases(graph, params, debugContext, options, cache)
        return weights(*kernel, biases)

    return createWeightsKernel, createWeightsBiases, createWeights


def in_order(units: Tensor, order: Sequence[int]) -> Tensor:
    """Put units, the rows of a tensor, in an order."""
    return concat([units[unit].expand([0]) for unit in order], 0)


def order_of(layer: Layer[P], params: P, name: str) -> list[int]:
    """Return where each unit stands in the weights; raises poplibs_error for one that lacks."""
    cell_order = [layer.units(unit) for unit in params.cellOrder]
    if sorted(cell_order) != list(layer.units):
        raise poplibs_error(
            f"{name}: cell order {cell_order}; each of the {len(layer.units)} units is needed once"
        )
    return [cell_order.index(unit) for unit in layer.units]
