"""The constraint solver finds what trying all values finds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.graph.errors import PoplarError
from simulator.poplibs.popsolver import Model, Variable

Values = list[int | None]
LEAVES = 3

# What each operation makes of values; None rules them out.
MADE: dict[str, Callable[..., int | None]] = {
    "sum": lambda *parts: sum(parts),
    "product": lambda *parts: math.prod(parts),
    "max": lambda *parts: max(parts),
    "min": lambda *parts: min(parts),
    "sub": lambda a, b: a - b if a >= b else None,
    "ceildiv": lambda a, b: -(-a // b) if b else None,
    "floordiv": lambda a, b: a // b if b else None,
    "mod": lambda a, b: a % b if b else None,
    "call": lambda *parts: None if parts[0] == 2 else (parts[0] * 7 + parts[-1]) % 5,
}
HOLDS: dict[str, Callable[[int, int], bool]] = {
    "less": lambda a, b: a < b,
    "lessOrEqual": lambda a, b: a <= b,
    "equal": lambda a, b: a == b,
    "notEqual": lambda a, b: a != b,
    "factorOf": lambda a, b: b > 0 and a % b == 0,
}
SEVERAL = ("sum", "product", "max", "min", "call")


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    """Draw intervals of a few variables, what is made of them, what holds, and what is the cost."""
    intervals = [
        sorted(draw(st.tuples(st.integers(0, 7), st.integers(0, 7)))) for _ in range(LEAVES)
    ]
    made: list[tuple[str, list[int]]] = []
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from([*MADE]))
        count = draw(st.integers(1, 3)) if kind in SEVERAL else 2
        known = st.integers(0, LEAVES + len(made) - 1)
        made.append((kind, draw(st.lists(known, min_size=count, max_size=count))))
    anything = st.integers(0, LEAVES + len(made) - 1)
    holds = draw(st.lists(st.tuples(st.sampled_from([*HOLDS]), anything, anything), max_size=2))
    cost = draw(st.lists(anything, min_size=1, max_size=3))
    return {"intervals": intervals, "made": made, "holds": holds, "cost": cost}


def evaluated(problem: dict[str, Any], leaves: Sequence[int]) -> list[int] | None:
    """Give all values that follow from those of the variables; None when something fails."""
    values = [*leaves]
    for kind, parts in problem["made"]:
        found = MADE[kind](*(values[part] for part in parts))
        if found is None:
            return None
        values.append(found)
    fits = all(HOLDS[kind](values[a], values[b]) for kind, a, b in problem["holds"])
    return values if fits else None


def modelled(problem: dict[str, Any]) -> tuple[Model, list[Variable]]:
    model = Model()
    variables = [model.addVariable(low, high) for low, high in problem["intervals"]]
    for kind, parts in problem["made"]:
        operands = [variables[part] for part in parts]
        if kind == "call":
            variables.append(model.call(operands, lambda values: MADE["call"](*values)))
        elif kind in SEVERAL:
            variables.append(getattr(model, kind)(operands))
        else:
            variables.append(getattr(model, kind)(*operands))
    for kind, a, b in problem["holds"]:
        getattr(model, kind)(variables[a], variables[b])
    return model, variables


@settings(max_examples=400, deadline=None)
@given(problems())
def test_the_least_cost_is_that_of_trying_all_values(problem: dict[str, Any]) -> None:
    model, variables = modelled(problem)
    solution = model.minimize([variables[part] for part in problem["cost"]])
    ranges = [range(low, high + 1) for low, high in problem["intervals"]]
    tried = (evaluated(problem, leaves) for leaves in product(*ranges))
    costs = [[values[part] for part in problem["cost"]] for values in tried if values]
    assert solution.validSolution() == bool(costs)
    if costs:
        found = [solution[variable] for variable in variables]
        assert evaluated(problem, found[:LEAVES]) == found
        assert [solution[variables[part]] for part in problem["cost"]] == min(costs)


def test_what_contradicts_itself_over_a_huge_range_has_no_solution() -> None:
    model = Model()
    low, high = (model.product([model.addVariable(0, 7)] * 24) for _ in range(2))
    model.less(low, high)
    model.less(high, low)
    assert not model.minimize(low).validSolution()


def test_a_plan_of_a_product_is_the_best_of_all_partitions() -> None:
    model, tiles = Model(), 60
    splits = [model.addVariable(1, size) for size in (16, 12, 40)]
    model.lessOrEqual(model.product(splits), tiles)
    parts = [model.ceildiv(size, split) for size, split in zip((16, 12, 40), splits, strict=True)]
    received = model.ceildiv(model.product([model.sum(parts[:2]), parts[2]]), 4)
    total = model.sum([model.product(parts), received, model.product([splits[2], 5])])
    solution = model.minimize(total)

    def cost(m: int, n: int, k: int) -> int:
        a, b, c = -(-16 // m), -(-12 // n), -(-40 // k)
        return a * b * c + -(-(a + b) * c // 4) + 5 * k

    every = product(range(1, 17), range(1, 13), range(1, 41))
    assert solution[total] == min(cost(*s) for s in every if math.prod(s) <= tiles)


def test_factors_of_a_number_are_its_divisors() -> None:
    model = Model()
    factor = model.addVariable(7, 100, "factor")
    model.factorOf(60, factor)
    assert model.minimize(factor)[factor] == 10


def test_what_cannot_hold_has_no_solution() -> None:
    model = Model()
    a = model.addVariable(3, 5, "a")
    model.less(a, 3)
    solution = model.minimize(a)
    assert not solution.validSolution()
    with pytest.raises(PoplarError, match="no solution, so"):
        solution[a]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda m: m.addVariable(5, 3, "a"), "variable 'a' from 5 to 3; it needs 0 <= min <= max"),
        (lambda m: m.addConstant(-1, "c"), "constant 'c' is -1; 0 or more is needed"),
        (lambda m: m.sum([]), "sum of no variables"),
        (lambda m: m.less(Variable(99), 3), r"Variable\(id=99, name=\'\'\) is of another model"),
        (lambda m: m.minimize(m.addConstant(1))[Variable(99)], "is no variable of this solution"),
    ],
)
def test_wrong_models_are_refused_in_one_line(wrong: Callable[[Model], object], said: str) -> None:
    with pytest.raises(PoplarError, match=said) as caught:
        wrong(Model())
    assert "\n" not in str(caught.value)


def test_a_large_plan_takes_few_steps() -> None:
    # Trying all splits of 1,472 tiles would call the function more than 100,000 times.
    model, tried = Model(), []
    rows, columns, depth = (model.addVariable(1, 1472, name) for name in ("m", "n", "k"))
    model.lessOrEqual(model.product([rows, columns, depth]), 1472)
    sizes = zip((512, 768, 3072), (rows, columns, depth), strict=True)
    work = model.product([model.ceildiv(size, split) for size, split in sizes])
    counted = model.call([work], lambda values: tried.append(values) or values[0])
    solution = model.minimize([work, counted])
    assert solution[work] == solution[counted] and len(tried) < 100
    # The tiles are used as well as 512 * 768 * 3,072 / 1,472 allows, rounded up to whole parts.
    assert solution[work] < 1.01 * 512 * 768 * 3072 / 1472
