"""Liveness against a brute-force interpreter that follows every path of small programs."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from simulator.compiler import liveness as module
from simulator.compiler.executable import (
    Access,
    CompilerVariable,
    Lowered,
    LoweredProgram,
    Pieces,
)
from simulator.compiler.liveness import find_liveness, liveness_steps
from simulator.graph import kernels
from simulator.graph.errors import PoplarError
from simulator.graph.graph import Graph
from simulator.graph.machine.target import TARGETS, with_ipus
from simulator.graph.types import FLOAT


@pytest.fixture(params=["compiled", "at once", "two steps at a time"])
def passes(request, monkeypatch):
    """Add up the bytes in C where it was built, and in NumPy, for all steps and for two."""
    if request.param != "compiled":
        monkeypatch.setattr(kernels, "compiled", None)
    if request.param == "two steps at a time":
        monkeypatch.setattr(module, "STEPS_AT_ONCE", 2)
    return request.param


VARIABLES = 3
NAMES = [f"v{number}" for number in range(VARIABLES)]
ids = st.integers(0, VARIABLES - 1)
leaves = st.tuples(st.just("leaf"), st.sets(ids, max_size=2), st.dictionaries(ids, st.booleans()))
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(st.just("Sequence"), st.lists(inner, min_size=1, max_size=3)),
        st.tuples(st.just("Repeat"), st.integers(1, 2), inner),
        st.tuples(st.just("If"), st.tuples(inner)),
        st.tuples(st.just("IfElse"), st.tuples(inner, inner)),
        st.tuples(st.just("RepeatWhile"), st.tuples(inner, inner)),
        st.tuples(st.just("Call"), inner),
    ),
    max_leaves=4,
)


def flatten(branches):
    """Return the programs, accesses and functions of a Switch over `branches`."""
    programs, access, functions = [], [], []

    def add(node):
        row = len(programs)
        if node[0] == "leaf":
            programs.append(LoweredProgram("OnTileExecute", compute_set=0))
            access.extend((row, variable, False, False) for variable in sorted(node[1]))
            access.extend((row, variable, True, whole) for variable, whole in node[2].items())
            return row
        if node[0] == "Call":
            programs.append(LoweredProgram("Call"))
            functions.append(add(node[1]))
            programs[row] = LoweredProgram("Call", target=len(functions) - 1)
            return row
        count = node[1] if node[0] == "Repeat" else -1
        programs.append(LoweredProgram(node[0], count=count))
        inner = [node[2]] if node[0] == "Repeat" else node[1]
        programs[row].children.extend([add(child) for child in inner])
        return row

    add(("Sequence", [("Switch", branches)]))
    columns = np.array(access, dtype=np.int64).reshape(-1, 4)
    whole = columns[:, 3].astype(bool)
    return programs, functions, Access(*columns[:, :2].T, columns[:, 2].astype(bool), whole)


def paths(programs, functions, row):
    """List every order in which one round through the program may execute its leaves."""
    program = programs[row]
    below = [paths(programs, functions, child) for child in program.children]
    match program.type:
        case "OnTileExecute":
            return [[row]]
        case "Call":
            return paths(programs, functions, functions[program.target])
        case "If":
            return [[], *below[0]]
        case "Switch" | "IfElse":
            return [path for child in below for path in child]
        case "RepeatWhile":
            check, body = below
            turns = [along([check, *[body, check] * count]) for count in range(3)]
            return [path for several in turns for path in several]
    return along(below * max(program.count, 1))


def along(parts):
    """Join every path of each part with every one of the next."""
    return [sum(chosen, []) for chosen in product(*parts)]


def interpret(programs, functions, access, host_reads):
    """Return what is alive at each leaf on any path of three rounds, by going back along each."""
    alive = {}
    rows = zip(access.program, access.variable, access.write, access.whole, strict=True)
    effects = {}
    for row, variable, write, whole in rows:
        reads, kills, touched = effects.setdefault(int(row), (set(), set(), set()))
        touched.add(int(variable))
        (kills if whole else set()).add(int(variable))
        (set() if write else reads).add(int(variable))
    for rounds in product(paths(programs, functions, 0), repeat=3):
        live = set(host_reads)
        for path in reversed(rounds):
            live |= set(host_reads)
            for row in reversed(path):
                reads, kills, touched = effects.get(row, (set(), set(), set()))
                alive.setdefault(row, set()).update(live | touched)
                live = (live - kills) | reads
                alive[row] |= live
    return alive


def found(programs, functions, access, host_reads):
    """Return what `find_liveness` calls alive at each leaf; always-live ones included."""
    graph = Graph(TARGETS["tiny"])
    for number, name in enumerate(NAMES):
        tensor = graph.addVariable(FLOAT, [1], name)
        graph.setTileMapping(tensor, number)
        if number in host_reads:
            graph.createHostRead(name, tensor)
    lowered = Lowered(programs, [2], functions, ["cs"], [], [], [], [], [], access)
    numbers = np.arange(VARIABLES)
    liveness = find_liveness(graph, lowered, Pieces(numbers, numbers, numbers * 0 + 4))
    always = set(np.flatnonzero(liveness.always_live).tolist())
    alive = {}
    for step, row in enumerate(liveness.program.tolist()):
        now = (liveness.begin <= step) & (step < liveness.end)
        alive[row] = set(liveness.variable[now].tolist())
    return alive, always, liveness


@settings(max_examples=80, deadline=None)
@given(st.lists(trees, min_size=1, max_size=2), st.sets(ids, max_size=1))
def test_liveness_is_what_a_walk_along_every_path_finds(branches, host_reads):
    programs, functions, access = flatten(branches)
    assume(len(paths(programs, functions, 0)) <= 8)  # three rounds are 512 ways
    expected = interpret(programs, functions, access, host_reads)
    alive, always, _ = found(programs, functions, access, host_reads)
    for row, live in expected.items():
        assert alive[row] - always == live - always


@settings(max_examples=20, deadline=None)
@given(st.lists(trees, min_size=1, max_size=2))
def test_bytes_by_step_are_those_of_the_variables_alive_at_it(branches):
    programs, functions, access = flatten(branches)
    alive, _, liveness = found(programs, functions, access, set())
    sizes = [4 * len(alive[row]) for row in liveness.program.tolist()]
    assert liveness.bytes.tolist() == sizes == liveness.bytes_by_ipu.sum(axis=1).tolist()
    # Each variable is alone on its tile, with four bytes.
    assert liveness.max_bytes_by_tile.sum() == 4 * len(set().union(*alive.values()))


def test_what_a_loop_of_no_turns_overwrites_is_live_through_it():
    write, read = ("leaf", set(), {0: True}), ("leaf", {0}, {})
    programs, functions, access = flatten([("Sequence", [write, ("Repeat", 0, write), read])])
    alive, _, _ = found(programs, functions, access, set())
    repeat = [row for row, program in enumerate(programs) if program.type == "Repeat"]
    assert alive[repeat[0]] == {0}


def test_a_variable_that_no_program_writes_is_always_live():
    programs, functions, access = flatten([("leaf", {1}, {0: True})])
    _, always, _ = found(programs, functions, access, set())
    assert always == {1}


def test_a_function_is_live_wherever_it_is_called_from():
    write, read = ("leaf", set(), {0: True}), ("leaf", {0}, {})
    programs, functions, access = flatten([("Sequence", [write, ("Call", read), ("Call", read)])])
    _, _, liveness = found(programs, functions, access, set())
    assert [programs[row].type for row in liveness.program.tolist()] == [
        "Sequence", "Switch", "Sequence", "OnTileExecute", *["Call", "OnTileExecute"] * 2,
    ]  # fmt: skip


def test_a_nest_of_forty_loops_takes_no_longer_than_forty_steps():
    nest = ("leaf", {0}, {1: True})
    for _ in range(40):
        nest = ("Repeat", 2, nest)
    programs, functions, access = flatten([nest])
    alive, always, _ = found(programs, functions, access, set())
    assert always == {0}
    assert alive[len(programs) - 1] == {1}


# Each kind of program alone: the rule by hand, so that a failure names it.

WRITE, READ, NOTHING = ("leaf", set(), {0: True}), ("leaf", {0}, {}), ("leaf", set(), {})


def live_at(tree, host_reads=()):
    """Return, for each executed leaf in order, whether variable 0 is live at it."""
    programs, functions, access = flatten([("Sequence", [tree])])
    alive, always, _ = found(programs, functions, access, set(host_reads))
    leaves = [row for row, program in enumerate(programs) if program.type == "OnTileExecute"]
    return [0 in alive[row] or 0 in always for row in leaves]


def test_in_a_sequence_a_variable_is_live_from_its_writing_to_its_last_reading():
    assert live_at(("Sequence", [NOTHING, WRITE, NOTHING, READ, NOTHING])) == [
        False, True, True, True, False,
    ]  # fmt: skip


def test_a_repeat_of_two_turns_keeps_what_its_next_turn_reads_and_one_of_one_does_not():
    # The first leaf of the body reads what the last one of the turn before wrote.
    body = ("Sequence", [READ, NOTHING, WRITE, NOTHING])
    before_and_after = ("Sequence", [WRITE, ("Repeat", 2, body), WRITE, READ])
    assert live_at(before_and_after) == [True, True, False, True, True, True, True]
    once = ("Sequence", [WRITE, ("Repeat", 1, body), WRITE, READ])
    assert live_at(once) == [True, True, False, True, False, True, True]


def test_a_switch_ends_a_life_only_where_each_of_its_branches_overwrites():
    def around(*branches):
        return live_at(("Sequence", [WRITE, NOTHING, ("Switch", branches), READ]))

    assert around(WRITE, WRITE)[:2] == [True, False]
    assert around(WRITE, NOTHING)[:2] == [True, True]


def test_an_if_without_an_else_ends_no_life_and_one_with_both_branches_does():
    assert live_at(("Sequence", [WRITE, NOTHING, ("If", (WRITE,)), READ]))[1]
    assert not live_at(("Sequence", [WRITE, NOTHING, ("IfElse", (WRITE, WRITE)), READ]))[1]


def test_what_the_check_of_a_while_loop_reads_is_live_through_its_body():
    loop = ("RepeatWhile", (READ, NOTHING))
    assert live_at(("Sequence", [WRITE, loop, NOTHING])) == [True, True, True, False]


def test_a_call_reads_what_its_function_reads():
    assert live_at(("Sequence", [WRITE, NOTHING, ("Call", READ), NOTHING]))[:2] == [True, True]


def test_what_the_host_reads_is_live_to_the_end():
    assert live_at(("Sequence", [WRITE, NOTHING]), {0}) == [True, True]


def test_a_variable_that_the_compiler_marks_is_always_live_though_programs_write_it():
    programs, functions, access = flatten([("leaf", {0}, {1: True, 2: True})])
    graph = Graph(TARGETS["tiny"])
    graph.setTileMapping(graph.addVariable(FLOAT, [1], "v0"), 0)
    place = (np.array([0]), np.array([4]))
    own = [CompilerVariable("x", "messageCode", *place, always_live=flag) for flag in (True, False)]
    lowered = Lowered(programs, [2], functions, ["cs"], [], [], [], [], own, access)
    numbers = np.arange(VARIABLES)
    liveness = find_liveness(graph, lowered, Pieces(numbers, numbers, numbers * 0 + 4))
    assert liveness.always_live.tolist() == [True, True, False]


def test_a_loop_of_no_turns_overwrites_and_reads_nothing_and_one_of_a_turn_does():
    assert live_at(("Sequence", [WRITE, NOTHING, ("Repeat", 0, WRITE), READ]))[1]
    assert not live_at(("Sequence", [WRITE, NOTHING, ("Repeat", 1, WRITE), READ]))[1]
    assert not live_at(("Sequence", [WRITE, NOTHING, ("Repeat", 0, READ), NOTHING]))[1]


def test_a_sequence_overwrites_what_one_of_its_steps_does():
    inner = ("Sequence", [NOTHING, WRITE, NOTHING])
    assert live_at(("Sequence", [WRITE, NOTHING, inner, READ])) == [
        True, False, False, True, True, True,
    ]  # fmt: skip


def test_the_body_of_a_while_loop_may_not_run_and_its_check_does():
    def around(check, body, *after):
        return live_at(("Sequence", [WRITE, NOTHING, ("RepeatWhile", (check, body)), *after]))

    assert around(NOTHING, WRITE, READ)[1]  # the body may not run
    assert not around(WRITE, NOTHING, READ)[1]
    assert around(NOTHING, NOTHING, READ) == [True] * 5
    assert around(NOTHING, READ, NOTHING) == [True, True, True, True, False]
    assert around(NOTHING, NOTHING, WRITE, READ) == [True, False, False, False, True, True]
    # What the check reads is live behind it, until the next check.
    assert around(("Sequence", [READ, NOTHING]), NOTHING) == [True] * 5
    assert around(("Sequence", [READ, NOTHING]), ("Sequence", [NOTHING, WRITE])) == [
        True, True, True, False, False, True,
    ]  # fmt: skip


def find(programs, access, *, functions=(), own=(), host_writes=(), host_reads=(), ipus=1):
    """Return the liveness of programs whose access is (program, variable, write, whole)."""
    graph = Graph(with_ipus(TARGETS["tiny"], ipus))
    for number, name in enumerate(NAMES):
        tensor = graph.addVariable(FLOAT, [1], name)
        graph.setTileMapping(tensor, number)
        for hosts, create in ((host_writes, graph.createHostWrite),
                              (host_reads, graph.createHostRead)):  # fmt: skip
            if number in hosts:
                create(name, tensor)
    columns = np.array(access, dtype=np.int64).reshape(-1, 4)
    entries = Access(*columns[:, :2].T, *columns[:, 2:].astype(bool).T)
    lowered = Lowered(programs, [2], [*functions], ["cs"], [], [], [], [], [*own], entries)
    numbers = np.arange(VARIABLES + len(own))
    tiles = np.minimum(3 + numbers, graph.target.num_tiles - 1)
    return find_liveness(graph, lowered, Pieces(numbers, tiles, 4 + numbers))


def spans(liveness, variable=0):
    """Return the steps between which a variable is live."""
    here = liveness.variable == variable
    return list(zip(liveness.begin[here].tolist(), liveness.end[here].tolist(), strict=True))


LEAF = LoweredProgram("OnTileExecute", compute_set=0)


def test_a_container_reads_and_overwrites_by_itself_too():
    """A Switch reads what it chooses by; a counter is overwritten before its loop."""
    programs = [LoweredProgram("Sequence", children=[1, 2, 3, 5]), LEAF, LEAF,
                LoweredProgram("Switch", children=[4]), LEAF, LEAF]  # fmt: skip
    chosen = find(programs, [(1, 0, True, True), (3, 0, False, False)])
    assert spans(chosen) == [(1, 4)]  # to the Switch
    counted = find(programs, [(1, 0, True, True), (3, 0, True, True), (5, 0, False, False)])
    assert spans(counted) == [(1, 2), (3, 6)]


def test_a_container_holds_what_it_leaves_to_the_steps_after_it():
    programs = [LoweredProgram("Sequence", children=[1, 3]),
                LoweredProgram("Sequence", children=[2]), LEAF, LEAF]  # fmt: skip
    liveness = find(programs, [(2, 0, True, True), (3, 0, False, False)])
    assert spans(liveness) == [(1, 4)]
    assert liveness.parent.tolist() == [-1, 0, 1, 0]


def test_what_the_first_step_reads_the_last_leaves_to_the_next_run():
    programs = [LoweredProgram("Sequence", children=[1, 2, 3, 4]), LEAF, LEAF, LEAF, LEAF]
    liveness = find(programs, [(2, 0, False, False), (3, 0, True, True)])
    assert spans(liveness) == [(0, 5)]
    later = find(programs, [(1, 1, True, True), (2, 1, False, False), (4, 0, True, False)])
    assert spans(later, 1) == [(1, 3)]


def test_syncs_are_no_steps_and_functions_that_are_never_called_have_none():
    sync = LoweredProgram("Sync")
    programs = [LoweredProgram("Sequence", children=[1, 2, 3, 4]), sync, LEAF, sync, LEAF, LEAF]
    liveness = find(programs, [(4, 0, True, True), (5, 1, True, True)], functions=[5])
    assert (liveness.program.tolist(), liveness.parent.tolist()) == ([0, 2, 4], [-1, 0, 0])
    assert spans(liveness) == [(2, 3)] and spans(liveness, 1) == []


def test_more_steps_than_a_tree_may_have_are_refused(monkeypatch):
    monkeypatch.setattr(module, "MAX_STEPS", 2)
    named = LoweredProgram("OnTileExecute", name="add", compute_set=0)
    rows, parents = liveness_steps([LoweredProgram("Sequence", children=[1]), named])
    assert (rows.tolist(), rows.dtype, parents.dtype) == ([0, 1], np.int64, np.int64)
    with pytest.raises(PoplarError) as refused:
        liveness_steps([LoweredProgram("Sequence", children=[1, 1]), named])
    assert str(refused.value) == (
        "OnTileExecute 'add': with all calls of functions written out the programs are more than "
        "2 steps"
    )


def test_variables_of_the_host_and_of_the_compiler_that_nothing_writes_are_always_live():
    place = (np.array([0]), np.array([4]))
    own = [
        CompilerVariable("x", "messageCode", *place),
        CompilerVariable("y", "messageCode", *place),
    ]
    programs = [LoweredProgram("Sequence", children=[1]), LEAF]
    access = [(1, 2, True, True), (1, 3, False, False), (1, 4, True, True)]
    liveness = find(programs, access, own=own, host_writes={0})
    assert liveness.always_live.tolist() == [True, False, False, True, False]
    assert find(programs, access[:1], host_reads={1}).always_live.tolist() == [False, True, False]


def test_live_bytes_are_of_each_ipu_and_the_most_of_each_tile(passes):
    """Variables 0, 1 and 2 of 4, 5 and 6 bytes lie on tiles 3 of IPU 0, 4 and 5 of IPU 1."""
    programs = [LoweredProgram("Sequence", children=[1, 2, 3]), LEAF, LEAF, LEAF]
    access = [(1, 0, True, True), (2, 0, False, False), (2, 1, True, True), (2, 2, True, True),
              (3, 2, False, False)]  # fmt: skip
    liveness = find(programs, access, ipus=2)
    assert liveness.bytes_by_ipu.tolist() == [[0, 0], [4, 0], [4, 11], [0, 6]]
    assert liveness.bytes.tolist() == [0, 4, 15, 6]
    most = liveness.max_bytes_by_tile
    assert most.tolist() == [0, 0, 0, 4, 5, 6, 0, 0]
    columns = (most, liveness.bytes, liveness.bytes_by_ipu, liveness.variable, liveness.begin)
    assert {column.dtype for column in columns} == {np.dtype(np.int64)}
