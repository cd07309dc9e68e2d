"""Random numbers have the distribution that is asked for, and differ from run to run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from models import model, node, prepared, tiny, trained

from simulator import popart
from simulator.model_runtime import ModelRunner


@pytest.mark.parametrize("like", ["", "Like"])
@pytest.mark.parametrize(
    ("name", "how", "mean", "spread"),
    [
        ("RandomNormal", {"mean": 3.0, "scale": 0.5}, 3.0, 0.5),
        ("RandomUniform", {"low": -1.0, "high": 5.0}, 2.0, 6 / 12**0.5),
    ],
)
def test_numbers_are_drawn_anew_from_their_distribution(
    name: str, how: dict[str, Any], mean: float, spread: float, like: str
) -> None:
    inputs = ["x"] if like else []
    shape = {} if like else {"shape": [40, 100]}
    draw = onnx.helper.make_node(f"{name}{like}", inputs, ["y"], **how, **shape)
    session = prepared(model([draw, node("Neg", "x", "z")], {"x": [40, 100]}, ["y"]), ["y"])
    session.setRandomSeed(7)
    runs = []
    for _ in range(2):
        anchors = session.initAnchorArrays()
        session.run(popart.PyStepIO({"x": np.zeros((40, 100), np.float32)}, anchors))
        runs.append(anchors["y"].copy())
    numbers = np.concatenate(runs)
    assert abs(numbers.mean() - mean) < 5 * spread / numbers.size**0.5
    assert abs(numbers.std() / spread - 1) < 0.05
    assert not np.array_equal(*runs)


def test_what_is_drawn_like_a_tensor_gives_it_no_gradient() -> None:
    # As a variational autoencoder has it: the gradient of the scale is what was drawn.
    nodes = [
        node("RandomNormalLike", "w", "e"), node("Mul", "w e", "s"), node("Add", "w s", "y"),
    ]  # fmt: skip
    loss = popart.IdentityLoss("y", "loss")
    w = np.float32([[1, -2, 0.5]])
    found = trained(nodes, {"w": w}, loss, "Gradient___w", "e")
    np.testing.assert_allclose(found["Gradient___w"], 1 + found["e"], rtol=1e-6)


def test_numbers_are_drawn_again_once_the_states_are_put_back() -> None:
    draw = node("RandomNormal", "", "y", shape=[40, 100])
    options = popart.SessionOptions(enableLoadAndOffloadRNGState=True)
    flow = popart.DataFlow(1, ["y"])
    session = popart.InferenceSession(model([draw], {}, ["y"]), flow, tiny(), userOptions=options)
    session.prepareDevice()
    session.setRandomSeed(7)
    states, runs = session.getRNGState(), []
    for _ in range(3):
        anchors = session.initAnchorArrays()
        session.run(popart.PyStepIO({}, anchors))
        runs.append(anchors["y"].copy())
        if len(runs) == 2:
            session.setRNGState(states)
    assert session.getRandomSeed() == 7
    assert np.array_equal(runs[0], runs[2]) and not np.array_equal(runs[0], runs[1])


def test_states_that_stay_on_the_device_are_refused() -> None:
    session = prepared(model([node("Neg", "x", "y")], {"x": [2]}, ["y"]), ["y"])
    with pytest.raises(popart.popart_exception, match="set enableLoadAndOffloadRNGState"):
        session.getRNGState()


def drawing(states: bool) -> Any:
    """Return a session that draws ten numbers a run."""
    draw = node("RandomNormal", "", "y", shape=[10])
    options = popart.SessionOptions(enableLoadAndOffloadRNGState=states)
    proto, flow = model([draw], {}, ["y"]), popart.DataFlow(1, ["y"])
    return popart.InferenceSession(proto, flow, tiny(), userOptions=options)


def drawn(session: Any, count: int) -> list[Any]:
    """Run so many times; return what was drawn in each."""
    runs = []
    for _ in range(count):
        anchors = session.initAnchorArrays()
        session.run(popart.PyStepIO({}, anchors))
        runs.append(anchors["y"].copy())
    return runs


@pytest.mark.parametrize("states", [False, True])
@pytest.mark.parametrize("seed", [None, 7 << 32 | 5])
def test_who_loads_a_file_draws_what_its_session_draws(
    tmp_path: Path, states: bool, seed: int | None
) -> None:
    written, file = drawing(states), tmp_path / "drawing.popef"
    if seed is None:
        drawing(states).compileAndExport(str(file))
        written.prepareDevice()
    else:
        written.prepareDevice()
        written.setRandomSeed(seed)
        written.saveExecutable(str(file))
    wanted = drawn(written, 2)
    loaded = drawing(states)
    loaded.loadExecutable(str(file))
    loaded.prepareDevice()
    np.testing.assert_array_equal(drawn(loaded, 2), wanted)
    assert loaded.getRandomSeed() == (seed or 0)
    with ModelRunner(file) as runner:
        np.testing.assert_array_equal([runner.execute({})["y"] for _ in range(2)], wanted)


def test_who_loads_a_file_with_states_goes_on_where_its_session_was(tmp_path: Path) -> None:
    session, file = drawing(True), tmp_path / "drawing.popef"
    session.prepareDevice()
    drawn(session, 1)
    session.saveExecutable(str(file))
    loaded = drawing(True)
    loaded.loadExecutable(str(file))
    loaded.prepareDevice()
    np.testing.assert_array_equal(drawn(loaded, 2), drawn(session, 2))
