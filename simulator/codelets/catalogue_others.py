"""Rows of the catalogue: vertex types of poplin, poprand, popsys and Poplar's run-time library."""

from __future__ import annotations

from simulator.codelets import clock, registers
from simulator.codelets import convolution_cycles as convolution
from simulator.codelets import copy_cycles as copies
from simulator.codelets import random_cycles as random
from simulator.codelets import reduction_cycles as reduction
from simulator.codelets import transpose_cycles as transposes
from simulator.codelets.vertex_cost import VertexCost, row, supervisor

_POPLIN = "PopLibs lib/poplin/PerformanceEstimation.hpp"
_POPRAND = "PopLibs lib/poprand/poprandCycleEstimators.cpp"
_POPSYS = "PopLibs lib/popsys/popsysCycleEstimators.cpp of 2019"
_REGISTER = "our estimate, as how setting a seed begins"
_GUIDE = "closed source; cycles observed in the user guide's sample"
_CLOSED = "closed source; our estimate after means in the user guide's sample"
_LAYERS = "in weights out"

POPLIN: tuple[VertexCost, ...] = (
    supervisor(
        "poplin::ConvPartial1x1Out<in,out,worklist16,128bit>, 2019",
        _LAYERS,
        convolution.conv_cycles,
        _POPLIN + " of 2019",
        (28, 400),
    ),
    supervisor(
        "poplin::ConvPartial1x1Out<in,out,worklist16,128bit>",
        _LAYERS,
        convolution.conv_1x1,
        _POPLIN,
        (28, 400),
    ),
    supervisor(
        "poplin::ConvPartialnx1<in,out,worklist16,128bit>",
        _LAYERS,
        convolution.conv_nx1,
        _POPLIN,
        (44, 500),
    ),
    supervisor(
        "poplin::ConvPartialHorizontalMac<in,out,worklist16>",
        _LAYERS,
        convolution.conv_hmac,
        _POPLIN,
        (36, 400),
    ),
    supervisor(
        "poplin::ConvPartialVerticalMac<in,out,worklist16,groups>",
        _LAYERS + " partials",
        convolution.conv_vmac,
        _POPLIN,
        (36, 450),
    ),
    supervisor(
        "poplin::ConvPartial1x4SLIC<in,out,stride,groups>",
        _LAYERS + " outFieldBuffer",
        convolution.conv_slic,
        _POPLIN,
        (36, 700),
    ),
    row(
        "poplin::OuterProduct<type>",
        "in weights out",
        convolution.outer_product,
        _POPLIN,
        (16, 150),
    ),
    row(
        "poplin::DotProduct<in,out>",
        "a b out",
        convolution.dense_dot,
        _POPLIN + ", the inner loop of other vertices",
        (12, 100),
    ),
    row(
        "DotProductVertex, tutorial 7",
        "a b out",
        convolution.tutorial_dot,
        "the public tutorial 6 (7 of the user guide), its own codelet",
        (12, 100),
    ),
    supervisor(
        "poplin::ReduceAdd<out,in>", "partials out", reduction.reduce_add, _POPLIN, (16, 150)
    ),
    supervisor(
        "poplin::ReduceAdd<out,in,true,interleaved>",
        "partials out",
        reduction.reduce_add_single_input,
        _POPLIN,
        (16, 150),
    ),
    supervisor(
        "popops::Transpose1D<type>",
        "src dst",
        transposes.transpose,
        "PopLibs lib/popsparse/PerformanceEstimation.hpp",
        (16, 200),
    ),
    row(
        "poplin::Transpose2d<type>, 2019",
        "src dst",
        transposes.transpose_2d,
        "PopLibs lib/poplin/poplinCycleEstimators.cpp of 2019",
        (16, 150),
    ),
)

POPRAND: tuple[VertexCost, ...] = (
    supervisor("poprand::UniformSupervisor<type>", "out", random.uniform, _POPRAND, (20, 120)),
    supervisor("poprand::NormalSupervisor<type>", "out", random.normal, _POPRAND, (20, 120)),
    supervisor(
        "poprand::TruncatedNormalSupervisor<type>",
        "out",
        random.truncated_normal,
        _POPRAND,
        (20, 160),
    ),
    supervisor("poprand::BernoulliSupervisor<type>", "out", random.bernoulli, _POPRAND, (16, 110)),
    supervisor("poprand::DropoutSupervisor<type>", "in out", random.dropout, _POPRAND, (20, 120)),
    supervisor(
        "poprand::SetSeedSupervisor, 2019",
        "seed",
        random.set_seed_2019,
        _POPRAND + " of 2019",
        (12, 28),
    ),
    supervisor("poprand::SetSeedSupervisor", "seed", random.set_seed, _POPRAND, (12, 28)),
)

POPSYS: tuple[VertexCost, ...] = (
    supervisor("popsys::TimeItStart", "out", clock.start_cycles, _POPSYS, (4, 40)),
    supervisor("popsys::TimeItEnd", "startCount out", clock.end_cycles, _POPSYS, (8, 76)),
    supervisor(
        "popsys::PutSupervisorCSR", "setVal", registers.put_cycles, _REGISTER, (4, 20), exact=False
    ),
    supervisor(
        "popsys::ModifySupervisorCSR",
        "clearVal setVal",
        registers.put_cycles,
        _REGISTER,
        (8, 28),
        exact=False,
    ),
)

RUN_TIME: tuple[VertexCost, ...] = (
    row("poplar_rt::ShortMemcpy", "src dst", copies.short_copy, _GUIDE, (8, 72)),
    supervisor(
        "poplar_rt::Memcpy64BitSupervisor",
        "src dst",
        copies.long_copy,
        _CLOSED,
        (12, 100),
        exact=False,
    ),
    supervisor(
        "poplar_rt::StridedCopyDA32",
        "src dst",
        copies.strided_copy,
        _CLOSED,
        (16, 170),
        exact=False,
    ),
    supervisor(
        "poplar_rt::DstStridedCopyDA32",
        "src dst",
        copies.strided_copy,
        _CLOSED,
        (16, 170),
        exact=False,
    ),
    row(
        "poplar_rt::StridedCopy64BitMultiAccess",
        "src dst",
        copies.strided_copy_64,
        _CLOSED,
        (16, 120),
        exact=False,
    ),
    row(
        "poplar_rt::DstStridedCopy64BitMultiAccess",
        "src dst",
        copies.strided_copy_64,
        _CLOSED,
        (16, 120),
        exact=False,
    ),
    row("poplar_rt::MemsetZero", "dst", copies.zero, _CLOSED, (8, 70), exact=False),
    row("poplar_rt::MemsetZero64Bit", "dst", copies.zero_64, _CLOSED, (8, 70), exact=False),
    row(
        "poplar_rt::DstStridedMemsetZero64Bit",
        "dst",
        copies.strided_zero_64,
        _CLOSED,
        (12, 90),
        exact=False,
    ),
)
