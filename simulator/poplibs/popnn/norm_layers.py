"""What the layers of batch, group, layer and instance norm share.

Each takes activations apart into channels of its own: those of the tensor, or groups of them for
each sample. PopLibs lib/popnn/{BatchNorm,GroupNorm}.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.option_table import Option, checked, defaults
from simulator.graph.program import Sequence
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import FLOAT, Type
from simulator.logging import library_call
from simulator.poplibs import poplin, popops, poputil
from simulator.poplibs.poplin.norms import check_activations
from simulator.poplibs.popops.overloads import NEEDED, arguments_of
from simulator.poplibs.popops.regions import debug_name

_P = ParamSpec("_P")
_R = TypeVar("_R")
Options = Mapping[str, object] | None
Statistics = Callable[..., tuple[Tensor, Tensor]]
OPTIONS = {
    "groupNormStridedChannelGrouping": Option(
        False, "channels of a group are as many apart as there are groups, instead of neighbours"
    )
}


# Examples of the functions that all norms have, of a sample of one channel.
_NAMESPACES = {"batch": "bn", "group": "gn", "layer": "ln", "instance": "in_"}
_TRIAL = """

    >>> from simulator import popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
"""
_EXAMPLES = {
    "NormStatistics": """    >>> acts = trial.tensor([[[1.0, 3.0]]])
    >>> statistics = popnn.{call}(trial.graph, acts, 0.0, trial.prog, {groups}False)
    >>> trial.values(*statistics)
    [[2.0], [1.0]]
    """,
    "NormWhiten": """    >>> acts, mean, factor = map(trial.tensor, ([[[1.0, 3.0]]], [2.0], [10.0]))
    >>> trial.values(popnn.{call}(trial.graph, acts, mean, factor, trial.prog))
    [[[-10.0, 10.0]]]
    """,
    "Normalise": """    >>> acts, mean, factor = map(trial.tensor, ([[[1.0, 3.0]]], [2.0], [1.0]))
    >>> gamma, beta = trial.tensor([10.0]), trial.tensor([5.0])
    >>> operands = acts, gamma, beta, mean, factor, trial.prog
    >>> trial.values(*popnn.{call}(trial.graph, *operands))
    [[[[-5.0, 15.0]]], [[[-1.0, 1.0]]]]
    """,
    "NormParamGradients": """    >>> whitened = trial.tensor([[[-1.0, 1.0]]])
    >>> gradients = trial.tensor([[[3.0, 5.0]]])
    >>> operands = whitened, gradients, trial.prog
    >>> trial.values(*popnn.{call}(trial.graph, *operands))
    [[2.0], [8.0]]
    """,
    "NormGradients": """    >>> whitened = trial.tensor([[[-1.0, 1.0, 1.0, -1.0]]])
    >>> gradients = trial.tensor([[[1.0, 0.0, 0.0, -1.0]]])
    >>> factor, gamma = trial.tensor([2.0]), trial.tensor([10.0])
    >>> operands = whitened, gradients, factor, gamma, trial.prog
    >>> trial.values(popnn.{call}(trial.graph, *operands))
    [[[20.0, 0.0, 0.0, -20.0]]]
    """,
    "NormParamUpdate": """    >>> gamma, beta = trial.tensor([10.0]), trial.tensor([5.0])
    >>> deltas = trial.tensor([1.0]), trial.tensor([3.0])
    >>> operands = *deltas, -0.5, gamma, beta, trial.prog
    >>> popnn.{call}(trial.graph, *operands)
    >>> trial.values(gamma, beta)
    [[9.5], [3.5]]
    """,
}


def _example(name: str) -> str:
    """Write the example of a function that all norms have; empty for others."""
    layer = name.partition("Norm")[0]
    kind = name.removeprefix(layer)
    if layer not in _NAMESPACES:
        return ""
    groups = "1, " if layer == "group" else ""
    return _TRIAL + _EXAMPLES[kind].format(call=f"{_NAMESPACES[layer]}.{name}", groups=groups)


def public(function: Callable[_P, _R], name: str) -> Callable[_P, _R]:
    """Make a library function of this name, with its example."""

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{(function.__doc__ or '').rstrip()}{_example(name)}"
    return library_call("POPNN")(call)


def check_options(name: str, options: Options) -> None:
    """Raise InvalidOptionError for options that are not known."""
    checked(OPTIONS, options or {}, name)


# Groups
def into_groups(name: str, acts: Tensor, groups: int, options: Options) -> Tensor:
    """View [sample][channel][field...] as [1 or so][sample, group][field...] of a group each."""
    check_activations(name, "activations", acts)
    channels = acts.dim(1)
    if not isinstance(groups, int) or groups < 1 or channels % groups:
        raise poplibs_error(
            f"{name}: {channels} channels of {acts!r} in {groups!r} groups; must divide evenly"
        )
    view = acts if acts.rank() > 2 else acts.expand([2])
    if _strided(name, options):
        view = view.reshapePartial(1, 2, [channels // groups, groups]).dimRoll(2, 1)
    else:
        view = view.reshapePartial(1, 2, [groups, channels // groups])
    return view.reshapePartial(0, 2, [groups * acts.dim(0)]).dimRoll(1, 0)


def out_of_groups(name: str, view: Tensor, like: Tensor, options: Options) -> Tensor:
    """View what was taken into groups as it was, in the shape of `like`."""
    samples, channels = like.dim(0), like.dim(1)
    groups = view.dim(1) // samples
    split = view.dimRoll(0, 1).reshapePartial(0, 1, [samples, groups])
    if _strided(name, options):
        split = split.dimRoll(1, 2)
    return split.reshapePartial(1, 3, [channels]).reshape(like.shape)


def _strided(name: str, options: Options) -> bool:
    settings = defaults(OPTIONS, checked(OPTIONS, options or {}, name))
    return bool(settings["groupNormStridedChannelGrouping"])


def groups_of(name: str, acts: Tensor, statistics: Tensor) -> int:
    """Return how many groups of each sample statistics are of."""
    check_activations(name, "activations", acts)
    if statistics.numElements() == 0 or statistics.numElements() % acts.dim(0):
        raise poplibs_error(
            f"{name}: statistics {statistics!r} of {acts!r}; as many for each sample are needed"
        )
    return statistics.numElements() // acts.dim(0)


def _of_nothing(
    graph: Graph, acts: Tensor, eps: float, prog: Sequence, groups: int, name: str
) -> tuple[Tensor, Tensor]:
    """Return the statistics of samples without elements."""
    mean = graph.addVariable(acts.dtype, [acts.dim(0) * groups], f"{name}/mean")
    poputil.mapTensorLinearly(graph, mean)
    deviation = graph.clone(mean, f"{name}/iStdDev")
    popops.fill(graph, mean, prog, 0.0, name)
    popops.fill(graph, deviation, prog, eps**-0.5, name)
    return mean, deviation


# Group norm, of which layer and instance norm are the ends
def statistics(
    graph: Graph,
    acts: Tensor,
    eps: float,
    prog: Sequence,
    numGroups: int,
    unbiasedVarEstimate: bool,
    stableAlgo: bool = False,
    partialsType: Type = FLOAT,
    debugContext: str = "",
    options: Mapping[str, object] | None = None,
) -> tuple[Tensor, Tensor]:
    """Return mean and inverse standard deviation of each group of channels of each sample.

    Where there are no elements the mean and the variance are 0.
    """
    name = debug_name(debugContext, "Norm/statistics")
    if acts.rank() > 1 and not acts.numElements():
        return _of_nothing(graph, acts, eps, prog, numGroups, name)
    grouped = into_groups(name, acts, numGroups, options)
    return poplin.normStatistics(
        graph, grouped, eps, prog, unbiasedVarEstimate, stableAlgo, partialsType, debugContext
    )


def statistics_of(name: str, groups_of_sample: Callable[[Tensor], int]) -> Statistics:
    """Make `statistics` of a name, whose activations tell the number of groups themselves."""

    def call(
        graph: Graph,
        acts: Tensor,
        eps: float,
        prog: Sequence,
        unbiasedVarEstimate: bool,
        stableAlgo: bool = False,
        partialsType: Type = FLOAT,
        debugContext: str = "",
        options: Mapping[str, object] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return mean and inverse standard deviation of each group of each sample."""
        groups = groups_of_sample(acts)
        return statistics(
            graph, acts, eps, prog, groups, unbiasedVarEstimate, stableAlgo, partialsType,
            debugContext, options,
        )  # fmt: skip

    return public(call, name)


def whiten(
    graph: Graph,
    acts: Tensor,
    mean: Tensor,
    invStdDev: Tensor,
    prog: Sequence,
    debugContext: str = "",
    options: Mapping[str, object] | None = None,
) -> Tensor:
    """Return (acts - mean) * invStdDev, by group."""
    name = debug_name(debugContext, "Whiten")
    grouped = into_groups(name, acts, groups_of(name, acts, mean), options)
    whitened = poplin.normWhiten(graph, grouped, mean, invStdDev, prog, debugContext)
    return out_of_groups(name, whitened, acts, options)


def normalise(
    graph: Graph,
    acts: Tensor,
    gamma: Tensor,
    beta: Tensor,
    mean: Tensor,
    invStdDev: Tensor,
    prog: Sequence,
    debugContext: str = "",
    options: Mapping[str, object] | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the normalised and the whitened activations; gamma and beta are one a channel."""
    whitened = whiten(graph, acts, mean, invStdDev, prog, debugContext, options)
    return poplin.normalise(graph, whitened, gamma, beta, prog, debugContext), whitened


def gradients(
    graph: Graph,
    whitened: Tensor,
    gradsIn: Tensor,
    invStdDev: Tensor,
    gamma: Tensor,
    prog: Sequence,
    partialsType: Type,
    debugContext: str,
    options: Options,
) -> Tensor:
    """Return the gradient of activations that were whitened by group."""
    name = debug_name(debugContext, "Norm/gradients")
    groups = groups_of(name, whitened, invStdDev)
    scaled = poplin.normGradients(graph, gradsIn, gamma, prog, debugContext)
    out = poplin.normStatisticsGradients(
        graph,
        into_groups(name, whitened, groups, options),
        into_groups(name, scaled, groups, options),
        invStdDev,
        prog,
        partialsType,
        debugContext,
    )
    return out_of_groups(name, out, whitened, options)


def update(
    graph: Graph,
    gammaDelta: Tensor,
    betaDelta: Tensor,
    scale: float | Tensor,
    gamma: Tensor,
    beta: Tensor,
    prog: Sequence,
    debugContext: str = "",
    options: Mapping[str, object] | None = None,
) -> None:
    """Add `scale` times their gradients to gamma and beta, together."""
    name = debug_name(debugContext, "Norm/paramUpdate")
    check_options(name, options)
    if gamma.numElements() != gammaDelta.numElements() or beta.shape != betaDelta.shape:
        raise poplibs_error(f"{name}: {gammaDelta!r}, {betaDelta!r} for {gamma!r}, {beta!r}")
    parameters, deltas = concat([beta, gamma], 0), concat([betaDelta, gammaDelta], 0)
    popops.scaledAddTo(graph, parameters, deltas, scale, prog, name)


# Functions that PopLibs has for activations and for whitened ones
_LAST: dict[str, object] = {
    "prog": NEEDED,
    "partialsType": FLOAT,
    "debugContext": "",
    "options": None,
}
_STATISTICS: dict[str, object] = {"mean": NEEDED, "iStdDev": NEEDED}
_DEVIATION: dict[str, object] = {"invStdDev": NEEDED, "gamma": NEEDED}
_WHITENED: dict[str, object] = {"actsWhitened": NEEDED, "gradsIn": NEEDED}
_ACTS: dict[str, object] = {"acts": NEEDED, "gradsIn": NEEDED}
_PARAMETERS = (_WHITENED | _LAST, _ACTS | _STATISTICS | _LAST)
_GRADIENTS = (_WHITENED | _DEVIATION | _LAST, _ACTS | {"mean": NEEDED} | _DEVIATION | _LAST)


def _arguments(
    function: str,
    forms: tuple[dict[str, object], dict[str, object]],
    arguments: tuple[object, ...],
    named: dict[str, Any],
) -> dict[str, Any]:
    """Sort the arguments: in the form for activations a tensor stands where else the program is."""
    place = list(forms[0]).index("prog")
    of_acts = len(arguments) > place and isinstance(arguments[place], Tensor)
    form = forms[of_acts or "acts" in named or "mean" in named]
    return arguments_of(function, form, arguments, named)


def parameter_gradients(name: str, whitening: Callable[..., Tensor]) -> Callable[..., Any]:
    """Make the function that gives the gradients of gamma and beta.

    It takes (graph, actsWhitened, gradsIn, prog, ...) or (graph, acts, gradsIn, mean, iStdDev,
    prog, ...).
    """

    def call(graph: Graph, *arguments: object, **named: object) -> tuple[Tensor, Tensor]:
        """Return the gradients of gamma and beta."""
        call_args = _arguments(name, _PARAMETERS, arguments, named)
        last = (call_args["prog"], call_args["debugContext"], call_args["options"])
        whitened = call_args.get("actsWhitened")
        if whitened is None:
            whitened = whitening(
                graph, call_args["acts"], call_args["mean"], call_args["iStdDev"], *last
            )
        check_options(name, call_args["options"])
        return poplin.normParamGradients(
            graph,
            whitened,
            call_args["gradsIn"],
            call_args["prog"],
            call_args["partialsType"],
            call_args["debugContext"],
        )

    return public(call, name)


def input_gradients(
    name: str, whitening: Callable[..., Tensor], of_whitened: Callable[..., Tensor]
) -> Callable[..., Tensor]:
    """Make the function that gives the gradient of the activations, through their statistics.

    It takes (graph, actsWhitened, gradsIn, invStdDev, gamma, prog, ...) or (graph, acts, gradsIn,
    mean, invStdDev, gamma, prog, ...).
    """

    def call(graph: Graph, *arguments: object, **named: object) -> Tensor:
        """Return the gradient of the activations, through their statistics."""
        call_args = _arguments(name, _GRADIENTS, arguments, named)
        last = (call_args["prog"], call_args["debugContext"], call_args["options"])
        whitened = call_args.get("actsWhitened")
        if whitened is None:
            whitened = whitening(
                graph, call_args["acts"], call_args["mean"], call_args["invStdDev"], *last
            )
        return of_whitened(
            graph,
            whitened,
            call_args["gradsIn"],
            call_args["invStdDev"],
            call_args["gamma"],
            call_args["prog"],
            call_args["partialsType"],
            call_args["debugContext"],
            call_args["options"],
        )

    return public(call, name)
