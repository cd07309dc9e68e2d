"""Where fields are largest, as expected coordinates (popnn/SpatialSoftMax.hpp)."""

from __future__ import annotations

from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.program import Copy, Sequence
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.logging import library_call
from simulator.poplibs import poplin, popops
from simulator.poplibs.popnn.nonlinearities.activations import NonLinearityType, nonLinearity
from simulator.poplibs.popops.regions import debug_name


@library_call("POPNN")
def spatialSoftMax2D(
    graph: Graph,
    prog: Sequence,
    fields: Tensor,
    temperature: float,
    disableSoftmax: bool = False,
    debugContext: str = "",
) -> tuple[Tensor, Tensor]:
    """Return the expected row and column of each of fields [fields, height, width], from -1 to 1.

    The softmax is over all fields together; fields are divided by a temperature before, which is
    returned too.

    >>> from simulator import popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> field = trial.tensor([[[0.0, 0.0, 0.0], [0.0, 0.0, 30.0]]])  # largest below on the right
    >>> places, temperature = popnn.spatialSoftMax2D(trial.graph, trial.prog, field, 1.0)
    >>> trial.values(places)
    [[1.0, 1.0]]
    """
    name, dtype = debug_name(debugContext, "SpatialSoftMax2D"), fields.dtype
    if fields.rank() != 3:
        raise poplibs_error(f"{name}: {fields!r}; [fields, height, width] is needed")
    with graph.debug_scope(name, "popnn"):
        warmth = graph.addVariable(dtype, [], f"{name}/temperature")
        graph.setInitialValue(warmth, temperature)
        one = graph.addConstant(dtype, [], 1.0, f"{name}/one")
        for tensor in (warmth, one):
            graph.setTileMapping(tensor, 0)
        scale = popops.div(graph, one, warmth, prog, f"{name}/scale_factor")
        flat = popops.mul(graph, fields, scale, prog, f"{name}/fields_scaled").flatten()
        if not disableSoftmax:
            kind, label = NonLinearityType.SOFTMAX, f"{name}/softmax"
            flat = nonLinearity(graph, kind, flat.expand([0]), prog, label).flatten()
        count, height, width = fields.shape
        x = poplin.linspace(graph, dtype, -1.0, 1.0, width, name)
        y = poplin.linspace(graph, dtype, -1.0, 1.0, height, name)
        across, down = poplin.meshgrid2d(graph, x, y)
        shapes = [count, height * width], [height * width, 2]
        places = concat([down.flatten().expand([1]), across.flatten().expand([1])], 1)
        lhs = poplin.createMatMulInputLHS(graph, dtype, dtype, *shapes, f"{name}/lhs")
        rhs = poplin.createMatMulInputRHS(graph, dtype, dtype, *shapes, f"{name}/rhs")
        prog.add(Copy(flat.reshape(shapes[0]), lhs, name=name))
        prog.add(Copy(places, rhs, name=name))
        return poplin.matMul(graph, lhs, rhs, prog, dtype, f"{name}/mat_mul"), warmth
