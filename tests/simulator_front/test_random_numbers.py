"""Random numbers: reproducible from a seed, and of the distributions that they are drawn from."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from value_program import Values

from simulator import popops, poprand, poputil
from simulator.codelets.random import cycles as random_cycles
from simulator.codelets.random.philox import draw, philox
from simulator.graph.machine.target import TARGETS
from simulator.graph.program import Copy, Repeat, Sequence
from simulator.graph.tensors.tensor import concat
from simulator.graph.types import FLOAT, HALF, INT, UNSIGNED_INT

MANY = 20_000
SMALLEST = 1.95 / math.sqrt(MANY)  # Kolmogorov: 1 sample in 1,000 is further away


def words(*numbers: int) -> Any:
    return np.array([numbers], dtype=np.uint32)


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [  # the known answers that come with Random123, the authors' library
        ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([2**32 - 1] * 4, [2**32 - 1] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_words_are_those_of_philox(counter: Any, key: Any, expected: Any) -> None:
    assert philox(words(*counter), words(*key)).tolist() == [expected]


def test_a_generator_goes_on_where_it_stopped() -> None:
    state = words(1, 2, 2**32 - 1, 5)
    whole, _ = draw(state, np.array([8]))
    first, after = draw(state, np.array([3]))
    second, _ = draw(after, np.array([4]))
    assert after.tolist() == [[1, 2, 0, 6]]  # the position carries into its upper word
    assert whole.tolist() == [*first.tolist(), whole[3], *second.tolist()]


class Draws(Values):
    """A program that draws, with a seed tensor."""

    def __init__(self, seed: tuple[int, int] = (7, 11), **changes: Any) -> None:
        super().__init__(**changes)
        self.seed = self.tensor(seed, "seed", UNSIGNED_INT)

    def reference(self, *shape: int) -> Any:
        tensor = self.graph.addVariable(FLOAT, shape, "reference")
        poputil.mapTensorLinearly(self.graph, tensor)
        return tensor

    def uniform(self, seed: Any, modifier: int = 0, size: int = 100) -> Any:
        ends = (FLOAT, 0, 1, self.program)
        return poprand.uniform(self.graph, seed, modifier, self.reference(size), *ends)


def test_the_same_seed_gives_the_same_numbers_whatever_runs_around_it() -> None:
    alone, among = Draws(), Draws()
    first = alone.uniform(alone.seed)
    among.uniform(None)
    again = among.uniform(among.seed)
    among.uniform(None)
    third = among.uniform(among.seed)
    storage = among.run()
    np.testing.assert_array_equal(storage.read(again), alone.run().read(first))
    np.testing.assert_array_equal(storage.read(third), storage.read(again))


def test_seeds_modifiers_tiles_and_workers_draw_apart() -> None:
    values = Draws()
    other = values.tensor([7, 12], "other", UNSIGNED_INT)
    tensors = [values.uniform(values.seed), values.uniform(other), values.uniform(values.seed, 1)]
    storage = values.run()
    numbers = np.concatenate([storage.read(tensor) for tensor in tensors])
    assert len(np.unique(numbers)) == 300


def test_without_a_seed_the_generators_go_on() -> None:
    values = Draws()
    first, second = values.uniform(None), values.uniform(None)
    storage = values.run()
    assert not np.isin(storage.read(first), storage.read(second)).any()


def test_every_turn_of_a_loop_and_every_run_draws_others() -> None:
    values = Draws()
    outer, values.program = values.program, Sequence()
    drawn = values.uniform(None)
    history = values.graph.addVariable(FLOAT, [4, 100], "history")
    values.graph.setTileMapping(history, 0)
    values.program.add(Copy(concat(drawn.expand([0]), history[:3]), history))
    body, values.program = values.program, outer
    outer.add(Repeat(4, body))
    found = values.run().read(history)
    assert len(np.unique(found)) >= 398


def test_what_is_drawn_with_a_seed_does_not_disturb_the_generators() -> None:
    plain, mixed = Draws(), Draws()
    expected = [plain.uniform(None), plain.uniform(None)]
    found = [mixed.uniform(None)]
    mixed.uniform(mixed.seed)
    found.append(mixed.uniform(None))
    one, other = plain.run(), mixed.run()
    for left, right in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one.read(left), other.read(right))


def test_set_seed_seeds_what_follows() -> None:
    values = Draws()
    poprand.setSeed(values.graph, values.seed, 3, values.program)
    following = values.uniform(None)
    seeded = values.uniform(values.seed, 3)
    storage = values.run()
    np.testing.assert_array_equal(storage.read(following), storage.read(seeded))


def test_states_are_read_and_put_back() -> None:
    values = Draws()
    states = poprand.getHwSeeds(values.graph, values.program)
    first = values.uniform(None)
    poprand.setHwSeeds(values.graph, states, values.program)
    second = values.uniform(None)
    storage = values.run()
    assert states.shape == (4, 6, 4)
    np.testing.assert_array_equal(storage.read(first), storage.read(second))


def test_the_seed_is_read_when_the_program_runs() -> None:
    values = Draws()
    body, outer = Sequence(), values.program
    values.program = body
    out = values.uniform(values.seed)
    popops.addInPlace(values.graph, values.seed, 1, body)
    values.program = outer
    outer.add(Repeat(3, body))
    once = Draws((9, 13))
    expected = once.uniform(once.seed)
    np.testing.assert_array_equal(values.run().read(out), once.run().read(expected))


def distance(sample: Any, cumulative: Any) -> float:
    """Return how far a sample's distribution is from a cumulative one (Kolmogorov, Smirnov)."""
    order = np.sort(sample.astype(np.float64))
    expected = cumulative(order)
    ranks = np.arange(len(order))
    below, above = expected - ranks / len(order), (ranks + 1) / len(order) - expected
    return float(max(below.max(), above.max()))


def standard(x: Any) -> Any:
    return np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in x])


@pytest.mark.parametrize("dtype", [FLOAT, HALF], ids=str)
@pytest.mark.parametrize(("least", "most"), [(0, 1), (-3, 5)])
def test_uniform_numbers_fill_their_range(dtype: Any, least: float, most: float) -> None:
    values = Draws()
    out = poprand.uniform(
        values.graph, values.seed, 0, values.reference(MANY), dtype, least, most, values.program
    )
    found = values.run().read(out)
    assert found.dtype == dtype.numpy
    assert least <= found.min() <= found.max() <= most
    slack = 0 if dtype == FLOAT else 2e-3  # halves stand up to 2^-9 of the range apart
    assert distance(found, lambda x: (x - least) / (most - least)) < SMALLEST + slack


@settings(max_examples=15, deadline=None)
@given(st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**32 - 1))
def test_integers_lie_within_their_limits_and_meet_both_of_few(least: int, span: int) -> None:
    most = min(least + span, 2**31 - 1)
    values = Draws()
    out = poprand.uniform(
        values.graph, values.seed, 0, values.reference(500), INT, least, most, values.program
    )
    small = poprand.uniform(
        values.graph, values.seed, 1, values.reference(500), INT, -2, 2, values.program
    )
    storage = values.run()
    found = storage.read(out).astype(np.int64)
    assert least <= found.min() <= found.max() <= most
    assert set(storage.read(small).tolist()) == {-2, -1, 0, 1, 2}


@pytest.mark.parametrize("dtype", [FLOAT, HALF], ids=str)
def test_normal_numbers_are_normal(dtype: Any) -> None:
    values = Draws()
    out = poprand.normal(
        values.graph, values.seed, 0, values.reference(MANY), dtype, 2, 3, values.program
    )
    found = values.run().read(out).astype(np.float64)
    assert abs(found.mean() - 2) < 4 * 3 / math.sqrt(MANY)
    assert abs(found.std() - 3) < 4 * 3 / math.sqrt(2 * MANY)
    assert distance((found - 2) / 3, standard) < SMALLEST + (dtype == HALF) * 1e-3
    assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < 4 / math.sqrt(MANY)


@pytest.mark.parametrize("alpha", [1, 2.5])
def test_truncated_normal_numbers_are_cut_and_else_normal(alpha: float) -> None:
    values = Draws()
    reference = values.reference(MANY)
    out = poprand.truncatedNormal(
        values.graph, values.seed, 0, reference, FLOAT, -1, 0.5, alpha, values.program
    )
    found = (values.run().read(out).astype(np.float64) + 1) / 0.5
    outside = math.erfc(alpha / math.sqrt(2))
    assert np.abs(found).max() <= alpha + 1e-6
    assert distance(found, lambda x: (standard(x) - outside / 2) / (1 - outside)) < SMALLEST


@pytest.mark.parametrize("dtype", [FLOAT, HALF, INT], ids=str)
@pytest.mark.parametrize("probability", [0, 0.25, 1])
def test_bernoulli_draws_ones_at_its_rate(dtype: Any, probability: float) -> None:
    values = Draws()
    out = poprand.bernoulli(
        values.graph, values.seed, 0, values.reference(MANY), dtype, probability, values.program
    )
    found = values.run().read(out)
    assert set(found.tolist()) <= {0, 1}
    spread = math.sqrt(probability * (1 - probability) / MANY)
    assert abs(found.mean(dtype=np.float64) - probability) <= 4 * spread


@pytest.mark.parametrize("dtype", [FLOAT, INT], ids=str)
def test_logarithms_of_log_uniform_numbers_are_uniform(dtype: Any) -> None:
    values = Draws()
    out = poprand.logUniform(
        values.graph, values.seed, 0, values.reference(MANY), dtype, 1, 1000, values.program
    )
    found = values.run().read(out)
    assert 1 <= found.min() <= found.max() <= 1000
    if dtype == FLOAT:
        assert distance(np.log(found), lambda x: x / math.log(1000)) < SMALLEST
    else:  # one in log(2) / log(1000) is rounded down to 1
        assert abs((found == 1).mean() - math.log(2) / math.log(1000)) < 0.01


@pytest.mark.parametrize("dtype", [FLOAT, HALF], ids=str)
def test_dropout_keeps_and_scales_at_its_rate(dtype: Any) -> None:
    values = Draws()
    data = np.arange(1, MANY + 1) % 50 + 1
    tensor = values.tensor(data, dtype=dtype)
    call = (values.graph, values.seed, 5, tensor, tensor, 0.8, 1.25)
    first, second = (poprand.dropout(*call, values.program) for _ in range(2))
    storage = values.run()
    found = storage.read(first)
    kept = found != 0
    np.testing.assert_array_equal(found[kept], (data * dtype.numpy.type(1.25))[kept])
    assert abs(kept.mean() - 0.8) < 4 * math.sqrt(0.8 * 0.2 / MANY)
    np.testing.assert_array_equal(storage.read(second), found)


def test_dropout_is_drawn_where_its_reference_lies() -> None:
    values = Draws()
    tensor = values.tensor(np.ones(64))
    on_one = values.graph.addVariable(FLOAT, [64], "onOne")
    values.graph.setTileMapping(on_one, 3)
    call = (values.graph, values.seed, 0, tensor)
    like = poprand.dropout(*call, on_one, 0.5, 1.0, values.program)
    here = poprand.dropout(*call, on_one, 0.5, 1.0, False, values.program, "net")
    other = poprand.dropout(*call, tensor, 0.5, 1.0, values.program)
    storage = values.run()
    assert values.graph.getTileMapping(like) == values.graph.getTileMapping(on_one)
    assert values.graph.getTileMapping(here) == values.graph.getTileMapping(tensor)
    np.testing.assert_array_equal(storage.read(like), storage.read(here))
    assert (storage.read(like) != storage.read(other)).any()


def test_shaped_dropout_drops_whole_rows() -> None:
    values = Draws()
    tensor = values.tensor(np.ones((200, 5)))
    mask = values.reference(200, 1)
    out = poprand.shapedDropout(
        values.graph, values.seed, 0, tensor, mask, 0.5, 2.0, values.program
    )
    found = values.run().read(out)
    assert set(found.sum(axis=1).tolist()) == {0.0, 10.0}
    assert 60 < (found[:, 0] > 0).sum() < 140


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_a_view_is_drawn_like_any_tensor_of_its_layout(data: st.DataObject) -> None:
    rows, columns = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 30))
    values = Draws(tiles_per_ipu=data.draw(st.integers(1, 9)))
    tensor = values.tensor(np.zeros((rows, columns)))
    out = poprand.uniform(
        values.graph, values.seed, 0, tensor.transpose(), FLOAT, 1, 2, values.program
    )
    plain = poprand.uniform(values.graph, values.seed, 0, tensor, FLOAT, 1, 2, values.program)
    storage = values.run()
    np.testing.assert_array_equal(storage.read(out).T, storage.read(plain))
    assert len(np.unique(storage.read(plain))) >= rows * columns - 3


def test_one_supervisor_a_tile_draws_and_all_tiles_are_seeded() -> None:
    values = Draws()
    values.uniform(values.seed, size=64)  # 128 bytes a tile at least: two tiles
    groups = {group.codelet.name: group for group in values.graph.vertex_groups()}
    uniform = groups["poprand::UniformSupervisor<float>"]
    # 4 + 4 * (32 + 31) div 32 + 22 * 6
    assert uniform.cycles.tolist() == [4 + 7 + 132] * 2
    assert groups["poprand::SetSeedSupervisor"].cycles.tolist() == [14 + 22 * 6] * 4
    assert [c.name for c in values.graph.compute_sets] == [
        "uniform/getHwSeeds",
        "uniform/setMasterSeed",
        "uniform",
        "uniform/setHwSeeds",
    ]


def test_integers_cost_six_cycles_a_pair() -> None:
    target = TARGETS["mk1"]
    found = random_cycles.uniform(np.array([10, 11]), INT, target)
    assert found.tolist() == [4 + 22 * 6 + 30, 4 + 22 * 6 + 32]


def _call(function: str, *given: Any) -> Any:
    def call(values: Draws) -> None:
        reference = values.reference(4)
        arguments = (values.graph, values.seed, 0, reference, *given, values.program, "net")
        getattr(poprand, function)(*arguments)

    return call


REFUSED: list[tuple[Any, str]] = [
    (_call("uniform", UNSIGNED_INT, 0, 1), "net/uniform: type is unsigned int; known for float"),
    (_call("uniform", FLOAT, 2, 1), "net/uniform: from 2 to 1; needs minVal <= maxVal"),
    (_call("uniform", INT, 0, 2**31), r"net/uniform: from 0 to 2147483648; int has"),
    (_call("normal", INT, 0, 1), "net/normal: type is int; known for float, half"),
    (_call("normal", FLOAT, 0, -1), "net/normal: standard deviation is -1; needs 0 or more"),
    (_call("truncatedNormal", FLOAT, 0, 1, 0.5), "net/truncatedNormal: alpha is 0.5; at least 1"),
    (_call("bernoulli", FLOAT, 1.5), "net/bernoulli: probability is 1.5; one from 0 to 1"),
    (
        lambda v: poprand.uniform(v.graph, v.seed, -1, v.seed, FLOAT, 0, 1, v.program),
        "uniform: seed modifier is -1; needs one of 32 bits",
    ),
    (
        lambda v: poprand.setSeed(v.graph, v.reference(2), 0, v.program, "net"),
        "net/setMasterSeed: seed is .*float.*; two unsigned ints are needed",
    ),
    (
        lambda v: poprand.setHwSeeds(v.graph, v.seed, v.program),
        r"setHwSeeds: states are .*needs unsigned int\[4, 6, 4\]",
    ),
    (
        lambda v: poprand.dropout(
            v.graph, None, 0, v.reference(3), v.reference(4), 0.5, 1.0, v.program, "net"
        ),
        "net/dropout: .* differ in shape",
    ),
    (
        lambda v: poprand.dropout(v.graph, None, 0, v.seed, v.seed, 0.5, 1.0, v.program),
        "dropout: .*known for float, half",
    ),
    (
        lambda v: poprand.shapedDropout(
            v.graph, None, 0, v.reference(3, 2), v.reference(2, 1), 0.5, 1.0, v.program
        ),
        "shaped_dropout: .*does not broadcast",
    ),
]


@pytest.mark.parametrize(("call", "said"), REFUSED, ids=[said[:20] for _, said in REFUSED])
def test_what_does_not_fit_names_the_operation(call: Any, said: str) -> None:
    with pytest.raises(poputil.poplibs_error, match=said):
        call(Draws())
