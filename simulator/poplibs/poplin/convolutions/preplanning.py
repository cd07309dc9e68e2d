"""Plans made ahead, what they cost, and checks of options (poplin/ConvPreplan.hpp and others)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from simulator.graph.graph import Graph
from simulator.graph.machine.target import Target
from simulator.graph.option_table import checked
from simulator.graph.types import Type
from simulator.logging import library_call
from simulator.poplibs.poplin.convolutions.convolution import flattened_plan, reportPlanInfo
from simulator.poplibs.poplin.convolutions.create import PlanningCache
from simulator.poplibs.poplin.planning.joint_plan import plan_of
from simulator.poplibs.poplin.planning.options import CONVOLUTION, MATMUL, settings_of
from simulator.poplibs.poplin.planning.params import ConvParams, getWeightUpdateParams
from simulator.poplibs.poplin.planning.problem import problem_of

Options = Mapping[str, object] | None


@dataclass(frozen=True)
class MatMulParams:
    """A product of matrices, or of groups of them: types and shapes of its operands."""

    inputType: Type
    outputType: Type
    aShape: tuple[int, ...]
    bShape: tuple[int, ...]

    def convolution(self) -> ConvParams:
        """Return the convolution that the product is."""
        (groups, rows, inner), columns = (1, *self.aShape)[-3:], self.bShape[-1]
        return ConvParams(
            self.inputType, rows, (), (), inner, columns, groups, outputType=self.outputType
        )


@dataclass(frozen=True)
class PlanCosts:
    """What a plan is expected to take: cycles, and temporary bytes on its fullest tile."""

    cycles: int
    memory: int


ConvPlanParams = tuple[Target, ConvParams, Options]
MatMulPlanParams = tuple[Target, MatMulParams, Options]


@library_call("POPLIN")
def preplan(
    convs: Iterable[ConvPlanParams],
    matmuls: Iterable[MatMulPlanParams],
    cache: PlanningCache | None = None,
) -> None:
    """Plan convolutions and products; plans are kept for the whole process, with or without.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [8, 8], [3, 3], 2, 4)
    >>> product = poplin.MatMulParams(poplar.FLOAT, poplar.FLOAT, (2, 3), (3, 4))
    >>> target = trial.graph.getTarget()
    >>> poplin.preplan([(target, params, {})], [(target, product, {})])
    """
    preplanConvolutions(convs, cache)
    preplanMatMuls(matmuls, cache)


@library_call("POPLIN")
def preplanConvolutions(
    convs: Iterable[ConvPlanParams] | Graph, *rest: object, cache: PlanningCache | None = None
) -> None:
    """Plan convolutions: of each its target, parameters and options, after a graph or without.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [8, 8], [3, 3], 2, 4)
    >>> poplin.preplanConvolutions([(trial.graph.getTarget(), params, {})])
    """
    plans = rest[0] if isinstance(convs, Graph) else convs
    for target, params, options in plans:  # type: ignore[attr-defined]
        flattened_plan(target, params, options, "preplanConvolutions")


@library_call("POPLIN")
def preplanMatMuls(matmuls: Iterable[MatMulPlanParams], cache: PlanningCache | None = None) -> None:
    """Plan products: of each its target, parameters and options.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> product = poplin.MatMulParams(poplar.FLOAT, poplar.FLOAT, (2, 3), (3, 4))
    >>> poplin.preplanMatMuls([(trial.graph.getTarget(), product, {})])
    """
    for target, params, options in matmuls:
        settings = settings_of(target, MATMUL, options, "preplanMatMuls")
        plan_of(target, problem_of(params.convolution()), settings)


@library_call("POPLIN")
def reportPlanEstimatedCosts(
    graph: Graph, params: ConvParams, options: Options = None, cache: PlanningCache | None = None
) -> PlanCosts:
    """Return what the planner expects of a convolution.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [8, 8], [3, 3], 2, 4)
    >>> poplin.reportPlanEstimatedCosts(trial.graph, params)
    PlanCosts(cycles=..., memory=...)
    """
    plan = flattened_plan(graph.target, params, options, "reportPlanEstimatedCosts")
    return PlanCosts(plan.total_cycles, plan.temporary_bytes)


@library_call("POPLIN")
def reportWeightUpdatePlanInfo(
    graph: Graph,
    fwdParams: ConvParams,
    fwdOptions: Options = None,
    cache: PlanningCache | None = None,
) -> str:
    """Return the plan of the gradient of a convolution's weights as text.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [4], [2], 1, 1)
    >>> print(poplin.reportWeightUpdatePlanInfo(trial.graph, params))
    kernel 0 as channels; AMP, groups of 8 x 16, partials float; 2 tiles: batch 2, inputs 1; ...
    """
    update = getWeightUpdateParams(fwdParams)
    return reportPlanInfo(graph, update, {**(fwdOptions or {}), "pass": "TRAINING_WU"}, cache)


@library_call("POPLIN")
def convolutionValidateOptions(options: Options) -> None:
    """Raise InvalidOptionError for an option that no convolution has.

    >>> from simulator import poplin
    >>> poplin.convolutionValidateOptions({"pass": "INFERENCE_FWD"})
    >>> poplin.convolutionValidateOptions({"passes": "INFERENCE_FWD"})
    Traceback (most recent call last):
    simulator.graph.errors.InvalidOptionError: ...
    """
    checked(CONVOLUTION, options or {}, "convolutionValidateOptions")


@library_call("POPLIN")
def matmulValidateOptions(options: Options) -> None:
    """Raise InvalidOptionError for an option that no product has.

    >>> from simulator import poplin
    >>> poplin.matmulValidateOptions({"fullyConnectedPass": "INFERENCE_FWD"})
    >>> poplin.matmulValidateOptions({"pass": "INFERENCE_FWD"})
    Traceback (most recent call last):
    simulator.graph.errors.InvalidOptionError: ...
    """
    checked(MATMUL, options or {}, "matmulValidateOptions")
