"""The clock model against the printed timeline of the user guide's sample, and its invariants."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pva import progress
from simulator.runtime.timeline import Delays, Phase, replay, sync, watch


def phase(*cycles: int) -> Phase:
    return Phase.of(cycles, tiles_per_ipu=len(cycles))


def test_replay_gives_the_cycles_printed_in_the_user_guide():
    # Tile 0 stands for the 392 tiles of layer 1 (one-way delay 39), tile 1 for the farthest (59).
    delays = Delays.of([78, 118])
    phases = [
        Phase.sync(2, 2),
        *(phase(*p) for p in ((7, 0), (9, 0), (120, 120), (10_700, 0), (169, 0), (999, 0))),
    ]
    order = [0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 1, 0, 0, 0, 4, 0, 0, 0, 5, 6]
    result = replay(np.zeros(2, dtype=np.int64), phases, order, delays)
    shown = [i for i, p in enumerate(order) if p]
    assert result.cycles_from[shown].tolist() == [118, 472, 826, 1064, 1418, 12432, 12581]
    assert result.cycles_to[shown].tolist() == [118, 472, 946, 1064, 12098, 12581, 13580]
    overlapped = (
        np.array([7, 9, 120, 7, 10_700, 169, 999]) - (result.cycles_to - result.cycles_from)[shown]
    )
    assert overlapped.tolist() == [7, 9, 0, 7, 20, 20, 0]


def test_a_sync_of_idle_tiles_costs_the_largest_round_trip():
    assert sync(np.zeros(3, dtype=np.int64), Delays.of([10, 21, 7])).max() == 21


def test_every_cycle_of_every_tile_is_accounted_for():
    delays = Delays.of([4, 8, 6])
    phases = [Phase.sync(3, 3), phase(5, 0, 1), phase(0, 30, 2)]
    order = [0, 1, 2, 0, 1]
    result = replay(np.zeros(3, dtype=np.int64), phases, order, delays)
    spent = result.sync_cycles.sum() + 6 + 32 + 6
    assert spent + (result.end.max() - result.end).sum() == 3 * result.cycles_to[-1]


def test_bounds_by_ipu_are_those_of_its_own_active_tiles():
    phases = [Phase.of([0, 3, 2, 0], tiles_per_ipu=2)]
    result = replay(np.array([9, 1, 5, 7]), phases, [0], Delays.of([0] * 4, ipus=2))
    assert result.ipu.tolist() == [0, 1]
    assert result.from_min.tolist() == [1, 5]
    assert result.to_max.tolist() == [4, 7]
    assert (result.all_to_min.tolist(), result.all_to_max.tolist()) == ([4, 7], [9, 7])
    assert (result.cycles_from[0], result.cycles_to[0]) == (9, 9)


def test_a_snapshot_is_kept_before_every_1024th_step_of_the_recording():
    phases = [phase(1, 2)]
    start = np.zeros(2, dtype=np.int64)
    result = replay(start, phases, [0] * 2048, Delays.of([0, 0]), first_step=1000)
    assert result.snapshots.tolist() == [[24, 48], [1048, 2096]]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(0, 500), min_size=4, max_size=4),
    st.lists(st.lists(st.integers(0, 90), min_size=4, max_size=4), min_size=1, max_size=5),
)
def test_a_run_that_begins_with_a_sync_takes_no_note_of_the_clocks_before_it(before, rows):
    delays = Delays.of([60, 64, 70, 90])
    phases = [Phase.sync(4, 4), *(phase(*row) for row in rows)]
    order = [0, *range(1, len(phases)), 0, 1]
    free = np.array(before)
    from_zero = watch(np.zeros(4, dtype=np.int64), phases, order, delays)[0]
    shift = (free + delays.request).max() - delays.request.max()
    assert (watch(free, phases, order, delays)[0] == from_zero + shift).all()


def test_an_internal_sync_joins_the_tiles_of_each_ipu_by_itself():
    delays = Delays.of([4, 8, 4, 8], ipus=2, between_ipus=50)
    # IPU 0: latest request at 10 + 2; IPU 1: at 1 + 4.
    assert sync(np.array([10, 3, 0, 1]), delays).tolist() == [14, 16, 7, 9]


def test_an_external_sync_joins_all_ipus_and_costs_the_way_between_them():
    delays = Delays.of([4, 8, 4, 8], ipus=2, between_ipus=50)
    after = sync(np.array([10, 3, 0, 1]), delays, external=True)
    assert after.tolist() == [12 + 50 + 2, 12 + 50 + 4] * 2


def test_on_one_ipu_an_external_sync_is_an_internal_one():
    free, delays = np.array([10, 3, 0, 1]), Delays.of([4, 8, 4, 8])
    assert (sync(free, delays) == sync(free, delays, external=True)).all()


def test_both_ways_through_the_phases_give_the_same_clocks_on_several_ipus():
    delays = Delays.of([4, 8, 4, 8], ipus=2, between_ipus=50)
    phases = [
        Phase.sync(4, 2),
        Phase.sync(4, 2, external=True),
        Phase.of([0, 30, 2, 0], tiles_per_ipu=2),
    ]
    order, start = [2, 0, 2, 1, 2], np.zeros(4, dtype=np.int64)
    result = replay(start, phases, order, delays)
    # After the first sync IPU 0 stands at 36 and 38, IPU 1 at 6 and 8: the frontier is of IPU 0.
    assert result.cycles_to[1] == 38
    # Requests of the second phase: 38 + 30 + 4; then 50 between the IPUs, the way back, and 30.
    assert result.end.tolist() == [124, 126 + 30, 124 + 2, 126]
    assert (result.end == watch(start, phases, order, delays)[0]).all()


def test_the_odd_cycle_of_a_round_trip_is_on_the_way_to_the_sync_controller():
    delays = Delays.of([7, 4])
    assert (delays.request.tolist(), delays.release.tolist()) == ([4, 2], [3, 2])
    # Tile 0 asks at 10 + 4; both are let go at 14, 3 and 2 cycles later.
    assert sync(np.array([10, 0]), delays).tolist() == [17, 16]


def test_a_sync_of_some_tiles_leaves_the_clocks_of_the_others():
    # IPU 0 has tiles 0 and 1, IPU 1 tiles 2 and 3; tiles 1 and 3 are joined with themselves alone.
    delays = Delays.of([2, 4, 6, 8], ipus=2, between_ipus=10)
    order, start = [0], np.array([100, 20, 300, 30])
    inside = [Phase.sync_of(np.array([1, 3]), 2)]
    assert watch(start, inside, order, delays)[0].tolist() == [100, 24, 300, 38]
    # Of all IPUs: the last request comes at 30 + 4, and 10 cycles later all are let go.
    across = [Phase.sync_of(np.array([1, 3]), 2, external=True)]
    result = replay(start, across, order, delays)
    assert result.end.tolist() == [100, 46, 300, 48]
    assert (result.sync_cycles.tolist(), result.ipu.tolist()) == ([26 + 18], [0, 1])
    assert (result.from_min.tolist(), result.to_max.tolist()) == ([20, 30], [46, 48])


def test_clocks_of_watched_phases_are_those_of_their_tiles_before_and_after():
    phases = [phase(5, 0, 3), phase(0, 7, 0)]
    _, before, after = watch(np.array([1, 2, 3]), phases, [0, 1, 0], Delays.of([0] * 3), {0})
    assert [clocks.tolist() for clocks in before] == [[1, 3], [6, 6]]
    assert [clocks.tolist() for clocks in after] == [[6, 6], [11, 9]]


def test_a_step_on_an_ipu_has_the_cycles_of_its_longest_tile_and_of_all():
    result = replay(np.array([9, 1, 5, 7]), [Phase.of([2, 3, 0, 4], 2)], [0], Delays.of([0] * 4, 2))
    assert (result.longest.tolist(), result.spent.tolist()) == ([3, 4], [5, 4])


def test_a_replay_of_no_steps_leaves_the_clocks():
    result = replay(np.array([4, 2]), [phase(1, 1)], [], Delays.of([0, 0]))
    assert (result.end.tolist(), result.cycles_to.tolist()) == ([4, 2], [])
    assert result.ipu.shape == result.from_min.shape == (0,)
    assert result.snapshots.shape == (0, 2)


def test_phases_and_delays_are_whole_cycles_of_tiles():
    assert Delays.of([3.0]).request.dtype == Delays.of([3.0]).release.dtype == np.int64
    step, some = Phase.of([0.0, 3.0, 4.0, 0.0], 2), Phase.sync_of(np.array([1, 3]), 2)
    both = Phase.sync(4, 2, external=True)
    assert [phase.is_sync for phase in (step, some, both)] == [False, True, True]
    assert [phase.tiles.tolist() for phase in (step, some, both)] == [[1, 2], [1, 3], []]
    assert [phase.cycles.tolist() for phase in (step, some, both)] == [[3, 4], [0, 0], []]
    assert [phase.ipus.tolist() for phase in (step, some, both)] == [[0, 1]] * 3
    assert [phase.starts.tolist() for phase in (step, some, both)] == [[0, 1], [0, 1], [0, 2]]
    columns = (step.cycles, both.tiles, both.cycles, both.starts, both.ipus)
    assert {column.dtype for column in columns} == {np.dtype(np.int64)}


@pytest.mark.parametrize("order", [[], [0, 1, 2]])
def test_what_a_replay_records_is_whole_cycles(order):
    phases = [phase(1, 2), Phase.sync(2, 2, external=True), phase(0, 0)]
    result = replay(np.array([4, 2]), phases, order, Delays.of([0, 0]))
    columns = [getattr(result, field.name) for field in fields(result)]
    assert {column.dtype for column in columns} == {np.dtype(np.int64)}
    assert result.snapshots.tolist() == ([[4, 2]] if order else [])


def test_a_step_of_no_tiles_takes_no_time_on_any_ipu():
    result = replay(np.array([4, 2]), [phase(0, 0), phase(1, 0)], [0, 1, 0], Delays.of([0, 0]))
    assert result.cycles_to.tolist() == [4, 5, 5]
    assert (result.ipu_step.tolist(), result.to_max.tolist()) == ([1], [5])


@pytest.mark.parametrize("run", [watch, replay])
def test_the_steps_are_counted_as_timing_steps(run):
    heard = []
    with progress.listening(lambda *news: heard.append(news)):
        run(np.zeros(2, dtype=np.int64), [phase(1, 2)], [0] * 5, Delays.of([0, 0]))
    assert {str(news[0]) for news in heard} == {"timing steps"}
