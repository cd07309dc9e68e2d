"""Rows of the catalogue: vertex types of popops."""

from __future__ import annotations

from functools import partial

from simulator.codelets import (
    elementwise_cycles,
    reduction,
    reduction_cycles,
)
from simulator.codelets import operator_2d_cycles as operator_2d
from simulator.codelets import operator_cycles as operators
from simulator.codelets.catalogue_indexing import INDEXING
from simulator.codelets.vertex_cost import VertexCost, row, supervisor

_ESTIMATORS = "PopLibs lib/popops/popopsCycleEstimators.cpp"
_PERFORMANCE = "PopLibs lib/popops/PerformanceEstimation.cpp"
_REDUCTION = "PopLibs lib/popops/reduction/CycleEstimationFunctions.cpp"
_ONE, _SEVERAL = (16, 150), (24, 170)  # state and code of an element-wise vertex, 1D and 2D

OPERATORS: tuple[VertexCost, ...] = (
    supervisor(
        "popops::BinaryOp1DSupervisor<op,type>",
        "in1 in2 out",
        partial(operators.binary_1d, in_place=False),
        _ESTIMATORS,
        _ONE,
    ),
    supervisor(
        "popops::BinaryOp1DInPlaceSupervisor<op,type>",
        "out in2",
        partial(operators.binary_1d, in_place=True),
        _ESTIMATORS,
        _ONE,
    ),
    row(
        "popops::BinaryOp2D<op,type>",
        "in1 in2 out",
        partial(operator_2d.binary_2d, in_place=False),
        _ESTIMATORS,
        _SEVERAL,
    ),
    row(
        "popops::BinaryOp2DInPlace<op,type>",
        "out in2",
        partial(operator_2d.binary_2d, in_place=True),
        _ESTIMATORS,
        _SEVERAL,
    ),
    supervisor(
        "popops::UnaryOp1DSupervisor<op,type>",
        "in out",
        partial(operators.unary_1d, in_place=False),
        _ESTIMATORS,
        _ONE,
    ),
    supervisor(
        "popops::UnaryOp1DInPlaceSupervisor<op,type>",
        "out",
        partial(operators.unary_1d, in_place=True),
        _ESTIMATORS,
        _ONE,
    ),
    row(
        "popops::UnaryOp2D<op,type>",
        "in out",
        partial(operator_2d.unary_2d, in_place=False),
        _ESTIMATORS,
        _SEVERAL,
    ),
    row(
        "popops::UnaryOp2DInPlace<op,type>",
        "out",
        partial(operator_2d.unary_2d, in_place=True),
        _ESTIMATORS,
        _SEVERAL,
    ),
    supervisor(
        "popops::BroadcastScalar1DSupervisor<op,type>",
        "data B out",
        operators.broadcast_1d,
        _ESTIMATORS,
        _ONE,
    ),
    supervisor(
        "popops::BroadcastScalar1DInPlaceSupervisor<op,type>",
        "out B",
        operators.broadcast_1d,
        _ESTIMATORS,
        _ONE,
    ),
    row(
        "popops::BroadcastScalar2DData<op,type>",
        "data B out",
        operator_2d.broadcast_2d,
        _ESTIMATORS,
        _SEVERAL,
    ),
    row(
        "popops::BroadcastScalar2DDataInPlace<op,type>",
        "out B",
        operator_2d.broadcast_2d,
        _ESTIMATORS,
        _SEVERAL,
    ),
    row("popops::Select<type>", "in1 in2 in3 out", operator_2d.select, _ESTIMATORS, (32, 150)),
    row("popops::SelectInPlace<type>", "out in2 in3", operator_2d.select, _ESTIMATORS, (32, 150)),
    row(
        "popops::BroadcastSelect<type>",
        "in1 in2 in3 out",
        operator_2d.broadcast_select,
        _ESTIMATORS,
        (32, 150),
    ),
    row(
        "popops::BroadcastSelectInPlace<type>",
        "out in2 in3",
        operator_2d.broadcast_select,
        _ESTIMATORS,
        (32, 150),
    ),
    row(
        "popops::BroadcastSelectorSelect<type>",
        "in1 in2 in3 out",
        operator_2d.selector_select,
        _ESTIMATORS,
        (32, 150),
    ),
    row(
        "popops::BroadcastSelectorSelectInPlace<type>",
        "out in2 in3",
        operator_2d.selector_select,
        _ESTIMATORS,
        (32, 150),
    ),
    row("popops::Clamp<type>", "in1 in2 in3 out", operator_2d.clamp, _ESTIMATORS, (32, 150)),
    row("popops::ClampInPlace<type>", "out in2 in3", operator_2d.clamp, _ESTIMATORS, (32, 150)),
    row(
        "popops::BroadcastClamp<type>",
        "in1 in2 in3 out",
        operator_2d.broadcast_clamp,
        _ESTIMATORS,
        (32, 150),
    ),
    row(
        "popops::BroadcastClampInPlace<type>",
        "out in2 in3",
        operator_2d.broadcast_clamp,
        _ESTIMATORS,
        (32, 150),
    ),
    supervisor(
        "popops::Fused1DSupervisor<expression,type>",
        "in out",
        operator_2d.fused_1d,
        "our estimate, from PopLibs' op table",
        _ONE,
        exact=False,
    ),
    row(
        "popops::Fused2D<expression,type>",
        "in out",
        operator_2d.fused_2d,
        "our estimate, from PopLibs' op table",
        (24, 150),
        exact=False,
    ),
)

MOVES: tuple[VertexCost, ...] = (
    supervisor(
        "popops::ScaledAddSupervisor<type,type,constant>, 2019",
        "A B scale",
        elementwise_cycles.scaled_add_1d_2019,
        _ESTIMATORS + " of 2019",
        _ONE,
    ),
    row(
        "popops::ScaledAdd2D<type,constant>, 2019",
        "A B scale",
        elementwise_cycles.scaled_add_2d_2019,
        _ESTIMATORS + " of 2019",
        _SEVERAL,
    ),
    supervisor(
        "popops::ScaledAddSupervisor<type,type,constant>",
        "A B scale",
        elementwise_cycles.scaled_add_1d,
        _PERFORMANCE,
        _ONE,
    ),
    supervisor(
        "popops::ScaledSubtractSupervisor<type,type>",
        "A B scale",
        partial(elementwise_cycles.scaled_add_1d, subtract=True),
        _PERFORMANCE,
        _ONE,
    ),
    supervisor(
        "popops::aXPlusbYSupervisor<type,constant>",
        "A B scaleA scaleB",
        partial(elementwise_cycles.scaled_add_1d, axpby=True),
        _PERFORMANCE,
        _ONE,
    ),
    row(
        "popops::ScaledAdd2D<type,constant>",
        "A B scale",
        elementwise_cycles.scaled_add_2d,
        _ESTIMATORS,
        _SEVERAL,
    ),
    row(
        "popops::ScaledSubtract2D<type,constant>",
        "A B scale",
        elementwise_cycles.scaled_add_2d,
        _ESTIMATORS,
        _SEVERAL,
    ),
    supervisor(
        "popops::aXMinusbYSupervisor<type,constant>",
        "A B scaleA scaleB",
        partial(elementwise_cycles.scaled_add_1d, axpby=True, subtract=True),
        _PERFORMANCE,
        _ONE,
        exact=False,
    ),
    row(
        "popops::aXPlusbY2D<type,constant>",
        "A B scaleA scaleB",
        elementwise_cycles.scaled_add_2d,
        _ESTIMATORS,
        _SEVERAL,
        exact=False,
    ),
    row(
        "popops::aXMinusbY2D<type,constant>",
        "A B scaleA scaleB",
        elementwise_cycles.scaled_add_2d,
        _ESTIMATORS,
        _SEVERAL,
        exact=False,
    ),
    row("popops::Fill<type>", "out", elementwise_cycles.fill_1d, _PERFORMANCE, (12, 80)),
    row("popops::Fill2d<type>", "out", elementwise_cycles.fill_2d, _PERFORMANCE, (16, 80)),
    supervisor("popops::Cast1D<from,to>", "in out", elementwise_cycles.cast_1d, _PERFORMANCE, _ONE),
    row(
        "popops::Cast1DSingleWorker<from,to>",
        "in out",
        elementwise_cycles.cast_1d_single_worker,
        _PERFORMANCE,
        _ONE,
    ),
    row("popops::Cast2D<from,to>", "in out", elementwise_cycles.cast_2d, _PERFORMANCE, _SEVERAL),
)

REDUCTIONS: tuple[VertexCost, ...] = (
    row(
        "popops::Reduce<op,in,out,update,0>",
        "partials out",
        reduction_cycles.general_reduce,
        _REDUCTION,
        (16, 150),
    ),
    row(
        "popops::Reduce<op,in,out,update,1>",
        "partials out",
        reduction_cycles.continuous_reduce,
        _REDUCTION,
        (16, 150),
    ),
    row(
        "popops::Reduce<op,in,out,update,2>",
        "partials out",
        reduction.scalar_reduce_cycles,
        _REDUCTION,
        (16, 150),
    ),
    row(
        "popops::Reduce<op,in,out,update,2>, 2019",
        "partials out",
        reduction_cycles.scalar_reduce_2019,
        _REDUCTION + " of 2019",
        (16, 150),
    ),
    row(
        "popops::Reduce<op,in,out,update,3>",
        "partials out",
        reduction.strided_reduce_cycles,
        _REDUCTION,
        (16, 150),
    ),
    row(
        "popops::ScaledReduce<op,in,out,update,0>",
        "partials out scale",
        reduction_cycles.general_reduce,
        _REDUCTION,
        (20, 150),
    ),
)

POPOPS = OPERATORS + MOVES + REDUCTIONS + INDEXING
