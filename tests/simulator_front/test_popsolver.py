"""The constraint solver finds what trying all values finds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from simulator.graph.errors import PoplarError
from simulator.poplibs import popsolver
from simulator.poplibs.popsolver import Model, Variable

Values = list[int | None]
LEAVES = 3

# What each operation makes of values; None rules them out.
MADE: dict[str, Callable[..., int | None]] = {
    "sum": lambda *parts: sum(parts),
    "product": lambda *parts: math.prod(parts),
    "ceildiv": lambda a, b: -(-a // b) if b else None,
    "call": lambda *parts: None if parts[0] == 2 else (parts[0] * 7 + parts[-1]) % 5,
}
SEVERAL = ("sum", "product", "call")


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    """Draw values of a few variables, what is made of them, what holds, and what is the cost."""
    few = st.lists(st.integers(0, 9), min_size=1, max_size=8, unique=True).map(sorted)
    values = [draw(few) for _ in range(LEAVES)]
    listed = [draw(st.booleans()) for _ in range(LEAVES)]
    leaves = [
        v if only else [*range(v[0], v[-1] + 1)] for v, only in zip(values, listed, strict=True)
    ]
    made: list[tuple[str, list[int]]] = []
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from([*MADE]))
        count = draw(st.integers(1, 3)) if kind in SEVERAL else 2
        known = st.integers(0, LEAVES + len(made) - 1)
        made.append((kind, draw(st.lists(known, min_size=count, max_size=count))))
    anything = st.integers(0, LEAVES + len(made) - 1)
    holds = draw(st.lists(st.tuples(anything, anything), max_size=2))
    cost = draw(st.lists(anything, min_size=1, max_size=3))
    return {"leaves": leaves, "made": made, "holds": holds, "cost": cost}


def evaluated(problem: dict[str, Any], leaves: Sequence[int]) -> list[int] | None:
    """Return all values that follow from those of the variables; None when something fails."""
    values = [*leaves]
    for kind, parts in problem["made"]:
        found = MADE[kind](*(values[part] for part in parts))
        if found is None:
            return None
        values.append(found)
    return values if all(values[a] <= values[b] for a, b in problem["holds"]) else None


def called_by_arrays(columns: list[np.ndarray]) -> np.ndarray:
    rows = zip(*(column.tolist() for column in columns), strict=True)
    found = [MADE["call"](*row) for row in rows]
    return np.array([-1 if value is None else value for value in found], np.int64)


def modelled(problem: dict[str, Any]) -> tuple[Model, list[Variable]]:
    """Declare a problem."""
    model = Model()
    variables = []
    for values in problem["leaves"]:
        among = values if len(values) <= values[-1] - values[0] else None
        variables.append(model.addVariable(values[0], values[-1], among=among))
    for kind, parts in problem["made"]:
        operands = [variables[part] for part in parts]
        if kind == "call":
            variables.append(model.call(operands, called_by_arrays))
        elif kind in SEVERAL:
            variables.append(getattr(model, kind)(operands))
        else:
            variables.append(getattr(model, kind)(*operands))
    for a, b in problem["holds"]:
        model.lessOrEqual(variables[a], variables[b])
    return model, variables


# The bound on the first cost settles a box whose second cost is above the best.
SETTLED_BY_ITS_BOUND = {
    "leaves": [[*range(10)], [0, 1], [0, 3]],
    "made": [("ceildiv", [0, 0]), ("call", [1, 0])],
    "holds": [(2, 0)],
    "cost": [1, 4],
}


def tried(problem: dict[str, Any]) -> list[list[int]]:
    """List all values of all variables that fit, in the order of the choices."""
    every = (evaluated(problem, leaves) for leaves in product(*problem["leaves"]))
    return [values for values in every if values is not None]


@settings(max_examples=300, deadline=None)
@given(problems())
@example(SETTLED_BY_ITS_BOUND)
def test_the_least_cost_is_that_of_trying_all_values(problem: dict[str, Any]) -> None:
    model, variables = modelled(problem)
    solution = model.minimize([variables[part] for part in problem["cost"]])
    costs = [[values[part] for part in problem["cost"]] for values in tried(problem)]
    assert solution.validSolution() == bool(costs)
    if costs:
        found = [solution[variable] for variable in variables]
        assert evaluated(problem, found[:LEAVES]) == found
        assert [solution[variables[part]] for part in problem["cost"]] == min(costs)


@settings(max_examples=300, deadline=None)
@given(problems(), st.integers(1, 20))
def test_of_equal_costs_arrays_find_the_first(problem: dict[str, Any], chunk: int) -> None:
    model, variables = modelled(problem)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(popsolver, "MAX_ROWS", chunk)
        solution = model.minimize([variables[part] for part in problem["cost"]])
    fits = tried(problem)
    assert solution.validSolution() == bool(fits)
    if fits:
        first = min(fits, key=lambda values: [values[part] for part in problem["cost"]])
        assert [solution[variable] for variable in variables] == first


def test_what_contradicts_itself_over_a_huge_range_has_no_solution() -> None:
    model = Model()
    low, high = (model.product([model.addVariable(0, 7)] * 24) for _ in range(2))
    model.lessOrEqual(model.sum([low, 1]), high)
    model.lessOrEqual(model.sum([high, 1]), low)
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


def test_what_cannot_hold_has_no_solution() -> None:
    model = Model()
    a = model.addVariable(3, 5, "a")
    model.lessOrEqual(a, 2)
    solution = model.minimize(a)
    assert not solution.validSolution()
    with pytest.raises(PoplarError, match="no variable of any solution: there is none"):
        solution[a]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda m: m.addVariable(5, 3, "a"), "variable 'a' from 5 to 3; 1 to 1048576 whole"),
        (lambda m: m.addVariable(name="a", among=[]), r"'a' from .* among \[\]; 1 to 1048576"),
        (lambda m: m.addVariable(-1, 3, "a"), "'a' from -1 to 3; 1 to 1048576 whole numbers from"),
        (lambda m: m.addVariable(name="a", among=[0.5]), r" among \[0.5\]; 1 to 1048576 whole"),
        (lambda m: m.addVariable(1, 10**9, "a"), "from 1 to 1000000000; 1 to 1048576 whole"),
        (lambda m: m.addVariable(5, 9, "a", [1, 2]), r"from 5 to 9 among \[1, 2\]; 1 to"),
        (
            lambda m: m.addConstant(-1, "c"),
            "constant 'c' is -1; 0 to 4611686018427387902 is needed",
        ),
        (lambda m: m.sum([]), "sum of no variables"),
        (
            lambda m: m.lessOrEqual(Variable(99), 3),
            r"Variable\(id=99, name=\'\'\) is of another model",
        ),
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
    counted = model.call([work], lambda columns: tried.append(len(columns[0])) or columns[0])
    solution = model.minimize([work, counted])
    assert solution[work] == solution[counted] and sum(tried) < 30_000
    # The tiles are used as well as 512 * 768 * 3,072 / 1,472 allows, rounded up to whole parts.
    assert solution[work] < 1.01 * 512 * 768 * 3072 / 1472


def test_products_and_sums_beyond_64_bits_are_compared_rightly() -> None:
    large, model = [0, 1, 3, 1 << 20, 1 << 31, 1 << 61], Model()
    a, b, c = (model.addVariable(max=1 << 61, among=large) for _ in range(3))
    product_of_all = model.product([a, b, c, a])
    total = model.sum([a, b, c, a])
    model.lessOrEqual(1 << 61, product_of_all)
    solution = model.minimize([total, product_of_all])
    every = [[a + b + c + a, a * b * c * a] for a, b, c in product(large, repeat=3)]
    allowed = [costs for costs in every if costs[0] < 1 << 62 and 1 << 61 <= costs[1] < 1 << 62]
    assert [solution[total], solution[product_of_all]] == min(allowed)


def test_a_function_of_arrays_is_given_no_more_rows_than_a_chunk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(popsolver, "MAX_ROWS", 100)
    model, lengths, values = Model(), [], [*range(1, 13)]

    def cost(columns: list[np.ndarray]) -> np.ndarray:
        lengths.append(len(columns[0]))
        return sum(abs(column - 17) for column in columns)

    splits = [model.addVariable(among=values) for _ in range(4)]
    model.lessOrEqual(model.product(splits), 1000)
    best = model.call(splits, cost)
    solution = model.minimize(best)
    every = [s for s in product(values, repeat=4) if math.prod(s) <= 1000]
    assert solution[best] == min(sum(abs(value - 17) for value in s) for s in every)
    # Each row once, and the best ones once more.
    assert max(lengths) <= 100 and len(every) <= sum(lengths) <= len(every) + 100


def test_what_follows_from_constants_and_calls_is_known_with_them() -> None:
    model = Model()
    choice = model.addVariable(1, 9)
    six = model.call([model.sum([2, 4])], lambda columns: columns[0])
    total = model.sum([model.ceildiv(choice, six), six])
    model.lessOrEqual(six, choice)
    solution = model.minimize([total, choice])
    assert [solution[v] for v in (six, total, choice)] == [6, 7, 6]


def test_a_product_of_all_choices_bounds_the_first_of_them() -> None:
    model, rows = Model(), []
    splits = [model.addVariable(1, 1000) for _ in range(8)]
    model.lessOrEqual(model.product(splits), 20)
    cost = model.call(splits, lambda columns: rows.append(len(columns[0])) or sum(columns))
    assert model.minimize(cost)[cost] == 8
    assert sum(rows) < 10_000


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (
            lambda columns: columns[0] / 2,
            r"call 'cost' gave float64 \[3\]; int64 \[3\] is needed",
        ),
        (lambda columns: columns[0][:1], r"call 'cost' gave int64 \[1\]; int64 \[3\] is needed"),
        (lambda columns: 4, r"call 'cost' gave int64 \[\]; int64 \[3\] is needed"),
    ],
)
def test_a_function_of_arrays_must_give_one_value_a_row(
    function: Callable[[Any], Any], said: str
) -> None:
    model = Model()
    cost = model.call([model.addVariable(1, 3)], function, "cost")
    with pytest.raises(PoplarError, match=said):
        model.minimize(cost)
