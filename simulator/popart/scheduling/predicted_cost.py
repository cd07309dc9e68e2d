"""What nodes are likely to cost, before they are laid out: by this they are shared among IPUs."""

from __future__ import annotations

from math import prod

from simulator.codelets.costs import ceil_div
from simulator.graph.types import FLOAT, HALF
from simulator.popart.operators.call import Call
from simulator.popart.operators.images import transposed
from simulator.popart.operators.images.fields import conv_params
from simulator.popart.operators.table import OPERATORS
from simulator.poplibs.poplin.planning.joint_plan import plan_of
from simulator.poplibs.poplin.planning.options import CONVOLUTION, MATMUL, settings_of
from simulator.poplibs.poplin.planning.params import ConvParams, getGradientParams
from simulator.poplibs.poplin.planning.problem import compact, flattened, problem_of

STEP = 200  # cycles of the exchange and the syncs of a step, whatever it computes
WORKERS_WORK = 4  # bytes of its operands that a tile takes in with each cycle of element-wise work


def planned_cycles(call: Call) -> int:
    """Return the cycles of a node: of convolutions and products by plan, else by what it reads."""
    row = OPERATORS[call.node.key]
    if row.back is not None or call.node.operator == "Identity":
        return 0  # a view
    if call.node.operator == "Conv":
        return _of_plan(call, conv_params(call))
    if call.node.operator == "ConvTranspose":
        return _of_plan(call, getGradientParams(transposed.params_of(call)))
    if call.node.operator in ("MatMul", "Gemm") and call.info().device in (FLOAT, HALF):
        return _of_product(call)
    sizes = [info.nbytes() for info in call.infos if info is not None]
    most = max([*sizes, *(info.nbytes() for info in call.outputs)], default=0)
    return STEP + ceil_div(most, WORKERS_WORK * call.graph.target.num_tiles)


def _of_plan(call: Call, params: ConvParams) -> int:
    table = CONVOLUTION if call.node.operator.startswith("Conv") else MATMUL
    settings = settings_of(call.graph.target, table, call.options, call.name)
    plan = plan_of(call.graph.target, flattened(compact(problem_of(params))), settings)
    return STEP + plan.total_cycles


def _of_product(call: Call) -> int:
    """Plan a product of [groups, rows, inner] and [groups, inner, columns]."""
    a = call.info().dims
    turned = bool(call.attribute("transA", 0))
    inner = a[0 if turned or len(a) == 1 else -1]
    elements = prod(call.outputs[0].dims)
    shared = len(call.info(1).dims) <= 2  # one matrix for all: its rows make one product
    columns = call.outputs[0].dims[-1] if len(call.info(1).dims) > 1 else 1
    rows = elements // max(columns, 1) if shared or len(a) < 2 else a[-2]
    groups = elements // max(rows * columns, 1)
    if not min(inner, rows, columns, groups):
        return 0
    return _of_plan(call, ConvParams(call.info().device, rows, (), (), inner, columns, groups))
