"""Convolutions: values in every way to compute them, gradients, plans, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from convolved import convolved
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from value_program import Values, numbers

from simulator.graph.errors import NoPlanError, PoplarError, poplibs_error
from simulator.graph.types import FLOAT, HALF, INT
from simulator.poplibs import poplin
from simulator.poplibs.poplin import ConvParams, InputTransform, OutputTransform
from simulator.poplibs.poplin.planning import planner
from simulator.poplibs.poplin.planning.transforms import Transform

WAYS = ("AMP", "AMP swapped", "AMP expanded", "AMP expanded swapped", "HMAC")
WAYS_OF_HALVES = ("AMP", "SLIC", "VMAC")


FORMS = {
    "swapped": Transform(swap=True),
    "combined": Transform(combined=2),
    "together": Transform(together=True),
    "laid out": Transform(expanded=(0,), together=True),
    "swapped and laid out": Transform(swap=True, expanded=(0,), together=True),
}


def small(low: int, high: int, size: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(low, high), min_size=size, max_size=size)


@st.composite
def params_of_any_convolution(draw: st.DrawFn, *, flipped: bool = True) -> ConvParams:
    dims = draw(st.integers(1, 3))
    flips = st.lists(st.booleans() if flipped else st.just(False), min_size=dims, max_size=dims)
    kernel = draw(small(1, 4, dims))
    cut = [min(low, size - 1) for low, size in zip(draw(small(0, 1, dims)), kernel, strict=True)]
    transforms = (
        InputTransform(
            *(draw(small(low, high, dims)) for low, high in ((0, 1), (0, 1), (1, 2))),
            *(draw(small(0, 2, dims)) for _ in range(2)),
            draw(flips),
        ),
        InputTransform(cut, (), draw(small(1, 2, dims)), *(draw(small(0, 1, dims)),) * 2),
        OutputTransform(
            *(draw(small(low, high, dims)) for low, high in ((0, 1), (0, 1), (1, 2))),
            *(draw(small(0, 1, dims)) for _ in range(2)),
        ),
    )
    field = draw(small(1, 9, dims))
    channels = [draw(st.sampled_from(some)) for some in ((1, 3, 8, 16), (1, 4, 8, 20), (1, 2, 3))]
    try:
        return ConvParams(FLOAT, draw(st.integers(1, 4)), field, kernel, *channels, *transforms)
    except PoplarError:
        assume(False)
        raise


METHODS_OF = planner.methods_of  # every way to compute


def only(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the planner know one way to compute, where a problem has it."""

    def chosen(*arguments: Any) -> list[Any]:
        methods = list(METHODS_OF(*arguments))
        return [m for m in methods if m.describe() == way] or methods

    planner.plan_convolution.cache_clear()
    monkeypatch.setattr(planner, "methods_of", chosen)


def convolution(
    params: ConvParams, data: Any, weights: Any, target: str, created: bool, options: Any = None
) -> tuple[Values, Any]:
    """Make a program of a convolution, of tensors that PopLibs lays out or that lie linearly."""
    values = Values(target)
    if created:
        tensors = (
            poplin.createInput(values.graph, params, "in", options),
            poplin.createWeights(values.graph, params, "weights", options),
        )
        values._initial += zip(tensors, (data, weights), strict=True)
    else:
        tensors = values.tensor(data), values.tensor(weights)
    out = poplin.convolution(values.graph, *tensors, params, False, values.program, options=options)
    return values, out


@pytest.mark.parametrize("way", WAYS)
def test_convolutions_equal_numpys(way: str) -> None:
    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
    @given(params_of_any_convolution(), st.sampled_from(["tiny", "mk1"]), st.booleans())
    def check(params: ConvParams, target: str, created: bool) -> None:
        data, weights = numbers(*params.input_shape()), numbers(*params.weights_shape(), seed=1)
        problem = (params, data, weights, target, created)
        try:
            values, out = convolution(*problem)
        except poplibs_error:  # in this way alone it does not fit: the planner has others
            with pytest.MonkeyPatch.context() as every:
                every.setattr(planner, "methods_of", METHODS_OF)
                planner.plan_convolution.cache_clear()
                values, out = convolution(*problem)
            planner.plan_convolution.cache_clear()
        expected = convolved(data, weights, params)
        assert out.shape == expected.shape
        np.testing.assert_allclose(values.run().read(out), expected, rtol=1e-4, atol=1e-4)

    with pytest.MonkeyPatch.context() as monkeypatch:
        only(way, monkeypatch)
        check()
    planner.plan_convolution.cache_clear()


@pytest.mark.parametrize("form", FORMS)
def test_convolutions_in_other_forms_equal_numpys(form: str) -> None:
    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
    @given(params_of_any_convolution(), st.booleans())
    def check(params: ConvParams, created: bool) -> None:
        params = replace(params, numConvGroups=2 * params.numConvGroups)
        data, weights, _ = of_inner_product(params)
        try:
            values, out = convolution(params, data, weights, "tiny", created)
        except NoPlanError:  # a form that no planner would take
            assume(False)
        assert (values.run().read(out) == convolved(data, weights, params)).all()

    with pytest.MonkeyPatch.context() as monkeypatch:
        planner.plan_convolution.cache_clear()
        monkeypatch.setattr(
            planner, "transforms_of", lambda _, p, **__: [FORMS[form] if p.axes else Transform()]
        )
        check()
    planner.plan_convolution.cache_clear()


def test_a_kernel_that_is_larger_than_the_field_is_made_the_input() -> None:
    graph = Values("mk1").graph
    forward = ConvParams(HALF, 64, (15, 50), (5, 50), 1, 100)
    assert "swapped" in poplin.reportPlanInfo(graph, poplin.getGradientParams(forward))


def test_groups_of_one_channel_are_combined_where_the_input_is_dilated() -> None:
    graph, near = Values("mk1").graph, [1, 1]
    forward = ConvParams(
        HALF, 4, (56, 56), (3, 3), 1, 1, 128,
        InputTransform(paddingLower=near), outputTransform=OutputTransform(stride=[2, 2]),
    )  # fmt: skip
    assert poplin.reportPlanInfo(graph, forward).startswith("SLIC, ")
    backward = poplin.reportPlanInfo(graph, poplin.getGradientParams(forward))
    assert backward.startswith("16 groups combined; AMP, ")


@pytest.mark.parametrize("way", WAYS_OF_HALVES)
def test_convolutions_of_many_groups_of_halves_equal_numpys(way: str) -> None:
    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
    @given(
        params_of_any_convolution(),
        *(st.sampled_from(sizes) for sizes in ((2, 4, 6, 8, 32), (1, 1, 2, 4), (1, 1, 2))),
        st.booleans(),
    )
    def check(params: ConvParams, groups: int, inputs: int, outputs: int, created: bool) -> None:
        params = replace(
            params,
            dataType=HALF,
            numConvGroups=groups,
            inputChannelsPerConvGroup=inputs,
            outputChannelsPerConvGroup=outputs,
        )
        values = Values("mk1")
        data, weights, _ = of_inner_product(params)
        if created:
            tensors = (
                poplin.createInput(values.graph, params, "in"),
                poplin.createWeights(values.graph, params, "weights"),
            )
            values._initial += zip(tensors, (data, weights), strict=True)
        else:
            tensors = values.tensor(data, dtype=HALF), values.tensor(weights, dtype=HALF)
        out = poplin.convolution(values.graph, *tensors, params, False, values.program)
        expected = convolved(data, weights, params)  # whole numbers that halves hold
        assert (values.run().read(out) == expected).all()

    with pytest.MonkeyPatch.context() as monkeypatch:
        only(way, monkeypatch)
        check()
    planner.plan_convolution.cache_clear()


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(params_of_any_convolution(), st.sampled_from(["0", "0.01", "0.05"]))
def test_what_is_made_in_slices_for_want_of_memory_is_the_same(
    params: ConvParams, proportion: str
) -> None:
    data, weights, _ = of_inner_product(params)
    values, options = Values("tiny"), {"availableMemoryProportion": proportion}
    tensors = values.tensor(data), values.tensor(weights)
    program = values.program
    out = poplin.convolution(values.graph, *tensors, params, False, program, "", options)
    assert (values.run().read(out) == convolved(data, weights, params)).all()


@pytest.mark.parametrize("kind", ["outputs", "kernel"])
def test_a_plan_with_little_memory_makes_slices(kind: str) -> None:
    params = ConvParams(FLOAT, 16, (64,), (32 if kind == "kernel" else 1,), 16, 64)
    values, options = Values("tiny"), {"availableMemoryProportion": "0.12"}
    with pytest.MonkeyPatch.context() as monkeypatch:
        only("AMP expanded" if kind == "kernel" else "AMP", monkeypatch)
        assert f"slices of the {kind}" in poplin.reportPlanInfo(values.graph, params, options)
    planner.plan_convolution.cache_clear()


def of_inner_product(params: ConvParams) -> tuple[Any, Any, Any]:
    """Draw input, weights and a gradient of the output: small whole numbers, so sums are exact."""
    shapes = params.input_shape(), params.weights_shape(), params.output_shape()
    data, weights, gradient = (np.rint(3 * numbers(*s, seed=i)) for i, s in enumerate(shapes))
    return data, weights, gradient


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(params_of_any_convolution(flipped=False))
def test_the_backward_pass_is_the_transpose_of_the_forward_pass(params: ConvParams) -> None:
    data, weights, gradient = of_inner_product(params)
    values = Values("tiny")
    backward = poplin.getGradientParams(params)
    out = poplin.convolution(
        values.graph, values.tensor(gradient), values.tensor(weights), backward, True,
        values.program,
    )  # fmt: skip
    found = values.run().read(out)
    assert found.shape == data.shape
    assert (found * data).sum() == (convolved(data, weights, params) * gradient).sum()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(params_of_any_convolution(flipped=False))
def test_the_gradient_of_the_weights_is_the_transpose_too(params: ConvParams) -> None:
    data, weights, gradient = of_inner_product(params)
    values = Values("tiny")
    out = poplin.calculateWeightDeltas(
        values.graph, values.tensor(gradient), values.tensor(data), params, values.program
    )
    found = values.run().read(out)
    assert found.shape == weights.shape
    assert (found * weights).sum() == (convolved(data, weights, params) * gradient).sum()


def test_an_update_adds_the_scaled_gradient_to_the_weights() -> None:
    params = ConvParams(FLOAT, 2, (5,), (3,), 8, 8)
    data, weights, gradient = of_inner_product(params)
    values = Values("tiny")
    tensors = [values.tensor(array) for array in (gradient, weights, data)]
    poplin.convolutionWeightUpdate(values.graph, *tensors, params, -0.5, values.program)
    deltas = np.einsum(
        "nop,nipk->oik", gradient, np.lib.stride_tricks.sliding_window_view(data, 3, axis=2)
    )
    expected = weights - 0.5 * deltas[None]
    np.testing.assert_allclose(values.run().read(tensors[1]), expected, rtol=1e-4, atol=1e-4)


def test_halves_are_summed_as_floats_and_rounded_once() -> None:
    params = ConvParams(HALF, 1, (6, 6), (3, 3), 32, 16)
    data = numbers(*params.input_shape()).astype(np.float16)
    weights = numbers(*params.weights_shape(), seed=1).astype(np.float16)
    values = Values("mk1")
    tensors = values.tensor(data, dtype=HALF), values.tensor(weights, dtype=HALF)
    out = poplin.convolution(values.graph, *tensors, params, False, values.program)
    expected = convolved(data.astype(np.float32), weights.astype(np.float32), params)
    np.testing.assert_allclose(values.run().read(out), expected, rtol=1e-3, atol=1e-3)


def test_a_plan_says_how_the_convolution_is_cut() -> None:
    graph = Values("mk1").graph
    params = ConvParams(HALF, 4, (56, 56), (1, 1), 64, 64)
    text = poplin.reportPlanInfo(graph, params)
    assert text.startswith("AMP, groups of 16 x 8, partials float; ")
    assert "cycles: exchange" in text and "of 157,286 B a tile" in text


def test_the_plan_stands_in_the_debug_information() -> None:
    params = ConvParams(FLOAT, 2, (6,), (3,), 8, 8)
    values = Values("tiny")
    tensors = values.tensor(numbers(2, 8, 6)), values.tensor(numbers(1, 8, 8, 3))
    poplin.convolution(values.graph, *tensors, params, False, values.program, "layer")
    arguments = {c["name"]: c["arguments"] for c in values.graph.debug_contexts}
    assert arguments["layer/Conv_1"] == {"plan": poplin.reportPlanInfo(values.graph, params)}


def test_what_fits_on_no_tile_is_refused() -> None:
    values = Values("tiny", bytes_per_tile=4096)
    tensor = values.graph.addVariable(FLOAT, [600, 600], "a")
    with pytest.raises(PoplarError, match="big/Conv_1: no plan fits: the smallest takes"):
        poplin.matMul(values.graph, tensor, tensor, values.program, "big")


@pytest.mark.parametrize(
    ("what", "transform"),
    [
        ("an input of 2", {"inputTransform": InputTransform((1,), (1,), (), (2,))}),
        ("a kernel of 1", {"kernelTransform": InputTransform((0,), (1,), (), (), (1,))}),
        ("an output of 2", {"outputTransform": OutputTransform((2,), (0,), (), (1,))}),
    ],
)
def test_a_convolution_of_what_is_truncated_to_nothing_is_refused(
    what: str, transform: dict[str, Any]
) -> None:
    with pytest.raises(PoplarError, match=f"dimension 0: {what} is truncated by . and .; at least"):
        ConvParams(FLOAT, 1, (2,), (1,), 1, 1, **transform)


def test_what_does_not_fit_is_refused_by_its_debug_name() -> None:
    with pytest.raises(PoplarError, match=r"a kernel of 5 does not fit into an input of 3"):
        ConvParams(FLOAT, 1, (3,), (5,), 1, 1).output_shape()
    with pytest.raises(PoplarError, match=r"field \[3, 3\] and kernel \[3\] differ in dimensions"):
        ConvParams(FLOAT, 1, (3, 3), (3,), 1, 1)
    with pytest.raises(PoplarError, match="data of type int"):
        ConvParams(INT, 1, (3,), (3,), 1, 1)
    values, params = Values(), ConvParams(FLOAT, 1, (3,), (3,), 1, 1)
    tensor = values.tensor(numbers(1, 2, 3))
    with pytest.raises(PoplarError, match=r"layer/Conv_1: input .*float\[1, 1, 3\] is needed"):
        poplin.convolution(values.graph, tensor, tensor, params, False, values.program, "layer")
    with pytest.raises(PoplarError, match="availableMemoryProportion is '2'"):
        poplin.createInput(values.graph, params, "x", {"availableMemoryProportion": "2"})


UPDATE = {"pass": "TRAINING_WU"}


@pytest.mark.parametrize(
    ("kernel", "padding", "dims"), [((7, 1), (3, 0), "1"), ((1, 7), (0, 3), "0, 1")]
)
def test_a_trained_kernel_is_laid_out_as_channels_in_the_dimensions_that_gain(
    kernel, padding, dims
) -> None:
    # The published memory of inception_tr_bs4_i7_b7x1 and b1x7, 41 and 61 MB, tells them apart.
    around = InputTransform(paddingLower=padding, paddingUpper=padding)
    layer = ConvParams(HALF, 4, (17, 17), kernel, 192, 192, inputTransform=around)
    update = poplin.getWeightUpdateParams(layer)
    plan = poplin.reportPlanInfo(Values("mk1").graph, update, UPDATE)
    assert plan.startswith(f"operands swapped; kernel {dims} as channels; AMP, ")


def test_four_channels_are_multiplied_with_four_rows_of_a_trained_kernel_at_once() -> None:
    layer = ConvParams(
        HALF, 4, (224, 224), (7, 7), 4, 64, outputTransform=OutputTransform(stride=[2, 2])
    )
    plan = poplin.reportPlanInfo(Values("mk1").graph, layer, {"pass": "TRAINING_FWD"})
    assert plan.startswith("AMP, groups of 4 x ")


@pytest.mark.parametrize("which", ["TRAINING_FWD", "TRAINING_BWD", "TRAINING_WU"])
def test_trained_convolutions_equal_numpys(which: str) -> None:
    @settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
    @given(params_of_any_convolution(), st.booleans())
    def check(params: ConvParams, created: bool) -> None:
        data, weights, _ = of_inner_product(params)
        values, out = convolution(params, data, weights, "mk1", created, {"pass": which})
        assert (values.run().read(out) == convolved(data, weights, params)).all()

    check()
