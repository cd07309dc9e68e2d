"""Steps of optimisers as a model has them (ai.onnx.preview.training): weights with their state."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx

from simulator.popart.importing.composites.body import Body, Unsupported

FLOAT = onnx.TensorProto.FLOAT


def adagrad(body: Body) -> None:
    """Divide by the root of all squares of gradients so far (Adagrad)."""
    steps = body("Cast", "x1", to=FLOAT)
    decay = body("Add", body("Mul", steps, _real(body, "decay_factor", 0.0)), np.float32(1))
    rate = body("Div", "x0", decay)
    for weight, gradient, (squares,), (out, state) in _groups(body, 1):
        regular = _regularised(body, weight, gradient)
        new = body("Add", squares, body("Mul", regular, regular), out=state)
        _step(body, weight, body("Mul", rate, regular), _root(body, new), out)


def adam(body: Body) -> None:
    """Divide a running mean of gradients by the root of that of their squares (Adam)."""
    alpha, beta = (_number(body, *pair) for pair in (("alpha", 0.9), ("beta", 0.999)))
    rate = _corrected_rate(body, alpha, beta)
    for weight, gradient, (mean, squares), (out, *state) in _groups(body, 2):
        regular = _regularised(body, weight, gradient)
        new_mean = _running(body, mean, regular, alpha, state[0])
        square = body("Mul", regular, regular)
        new_squares = _running(body, squares, square, beta, state[1])
        update = body("Mul", rate, new_mean)
        after = _number(body, "norm_coefficient_post", 0.0)
        last = out if after == 0 else ""
        moved = _step(body, weight, update, _root(body, new_squares), last)
        if after:
            body("Mul", moved, np.float32(1 - after), out=out)


def momentum(body: Body) -> None:
    """Add to a running sum of gradients, and go along it (Momentum, also Nesterov's)."""
    mode = body.attribute("mode")
    if mode not in ("standard", "nesterov"):
        raise Unsupported(f"mode {mode!r}; known are standard, nesterov")
    alpha = np.float32(_number(body, "alpha", 0.9))
    begun = body("Greater", "x1", body.constant(0))
    share = body("Where", begun, _real(body, "beta", 1.0), np.float32(1))
    for weight, gradient, (speed,), (out, state) in _groups(body, 1):
        regular = _regularised(body, weight, gradient)
        new = body("Add", body("Mul", speed, alpha), body("Mul", share, regular), out=state)
        if mode == "nesterov":
            new = body("Add", regular, body("Mul", new, alpha))
        body("Sub", weight, body("Mul", "x0", new), out=out)


def _groups(body: Body, states: int) -> Iterator[tuple[str, str, list[str], list[str]]]:
    """Yield each weight, its gradient, its states, and the names of what they become.

    All weights stand first, then all gradients, then all of each state; the rate and the number of
    steps before them. Optional outputs do not exist.
    """
    count = (len(body.infos) - 2) // (2 + states)
    for place in range(count):
        weight, gradient, *state_inputs = (
            f"x{2 + part * count + place}" for part in range(2 + states)
        )
        numbers = [part * count + place for part in range(1 + states)]
        yield weight, gradient, state_inputs, [f"y{n}" if n else "y" for n in numbers]


def _number(body: Body, name: str, default: float) -> float:
    return float(body.attribute(name, default))


def _real(body: Body, name: str, default: float) -> np.float32:
    return np.float32(_number(body, name, default))


def _regularised(body: Body, weight: str, gradient: str) -> str:
    """Add the gradient of the weights' squared length."""
    return body("Add", body("Mul", weight, _real(body, "norm_coefficient", 0.0)), gradient)


def _running(body: Body, old: str, new: str, share: float, out: str) -> str:
    """Mix a running mean with a new value."""
    decayed = body("Mul", old, np.float32(share))
    return body("Add", decayed, body("Mul", new, np.float32(1 - share)), out=out)


def _root(body: Body, squares: str) -> str:
    return body("Add", body("Sqrt", squares), _real(body, "epsilon", 1e-6))


def _step(body: Body, weight: str, above: str, below: str, out: str) -> str:
    return body("Sub", weight, body("Div", above, below), out=out)


def _corrected_rate(body: Body, alpha: float, beta: float) -> str:
    """Return the rate as both means, which begin at 0, ask for it after T steps; as it is at 0."""
    steps = body("Cast", "x1", to=FLOAT)
    below, above = (
        body("Sub", np.float32(1), body("Pow", np.float32(share), steps)) for share in (alpha, beta)
    )
    begun = body("Greater", "x1", body.constant(0))
    share = body("Div", body("Sqrt", above), body("Where", begun, below, np.float32(1)))
    return body("Where", begun, body("Mul", "x0", share), "x0")
