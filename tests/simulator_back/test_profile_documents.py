"""Every key of the user guide's chapter "Profiling" is in the documents of a simulated run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pva.check import check
from pva.formats import registry
from tests.every_program import engine

IPUS, TILES_PER_IPU, TILES = 2, 7, 14
Document = dict[str, Any]


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> tuple[Document, Document]:
    path = tmp_path_factory.mktemp("report")
    options = {"autoReport.all": True, "autoReport.directory": str(path)}
    made = engine(options | {"debug.instrument": True}, IPUS, tiles=TILES_PER_IPU)
    made.run()
    data = registry.read(path)
    assert [str(violation) for violation in check(data)] == []
    return registry.value_of(data, "graph"), registry.value_of(data, "execution")


@pytest.fixture
def graph(documents: tuple[Document, Document]) -> Document:
    return documents[0]


@pytest.fixture
def execution(documents: tuple[Document, Document]) -> Document:
    return documents[1]


def found(document: Any, place: str) -> Any:
    for key in place.split("."):
        document = document[key]
    return document


def lengths(graph: Document) -> dict[str, int]:
    """How long each index is, counted where the chapter says that the index leads to."""
    tags = [program["type"] for program in graph["programs"]]
    exchanges = {
        tag: 1 + max(p["exchange"] for p in graph["programs"] if p["type"] == tag)
        for tag in ("DoExchange", "GlobalExchange", "StreamCopy")
    }
    assert tags.count("OnTileExecute") >= len(graph["computeSets"]["names"])
    return {
        "compute set": len(graph["computeSets"]["names"]),
        "vertex type": len(graph["vertexTypes"]["names"]),
        "internal exchange": exchanges["DoExchange"],
        "external exchange": exchanges["GlobalExchange"],
        "host exchange": exchanges["StreamCopy"],
        "tile of an IPU": TILES_PER_IPU,
        "tile": TILES,
    }


TARGET = (
    "type bytesPerIPU bytesPerTile clockFrequency numIPUs tilesPerIPU numTiles totalMemory "
    "minSyncDelay"
)
BY_TILE = (
    "interleaved interleavedIncludingGaps nonInterleaved nonInterleavedIncludingGaps overflowed "
    "overflowedIncludingGaps total totalIncludingGaps"
)
PARTS = (
    "codeBytes copyPtrBytes descriptorBytes edgePtrBytes paddingBytes totalBytes vertexDataBytes"
)
CATEGORIES = (
    "constant controlCode controlId controlTable copyDescriptor globalExchangeCode "
    "globalExchangePacketHeader globalMessage hostExchangeCode hostExchangePacketHeader "
    "hostMessage instrumentationResults internalExchangeCode message multiple outputEdge "
    "rearrangement sharedCodeStorage sharedDataStorage stack variable vectorListDescriptor "
    "vertexCode vertexFieldData vertexInstanceState"
)
MEMORY_BY_INSTRUCTION = (
    "delay exchange other receiveAddress receiveFormat receiveMux send sendWithPutAddress "
    "sendWithPutFormat sendWithPutMux total"
)


def _arrays() -> dict[str, tuple[str, ...]]:
    """Name the arrays of the graph profile with their indexes, outermost first."""
    arrays: dict[str, tuple[str, ...]] = {
        "target.relativeSyncDelayByTile": ("tile of an IPU",),
        "vertexTypes.names": ("vertex type",),
        "vertexTypes.sizes": ("vertex type",),
        "computeSets.names": ("compute set",),
        "computeSets.cycleEstimates.activeCyclesByTile": ("compute set", "tile"),
        "computeSets.cycleEstimates.activeCyclesByVertexType": ("compute set", "vertex type"),
        "computeSets.cycleEstimates.cyclesByTile": ("compute set", "tile"),
    }
    for place, kind, cycles in (
        ("exchanges", "internal exchange", "cyclesByTile"),
        ("externalExchanges", "external exchange", "estimatedCyclesByTile"),
        ("hostExchanges", "host exchange", "estimatedCyclesByTile"),
    ):
        for key in ("bytesReceivedByTile", "bytesSentByTile", cycles):
            arrays[f"{place}.{key}"] = (kind, "tile")
    arrays |= {f"memory.byTile.{key}": ("tile",) for key in BY_TILE.split()}
    for category in CATEGORIES.split():
        place = f"memory.byCategory.{category}"
        arrays[f"{place}.total"] = ("tile",)
        for region in ("interleaved", "nonInterleaved", "overflowed"):
            arrays[f"{place}.{region}.nonOverlapped"] = ("tile",)
            arrays[f"{place}.{region}.overlapped"] = ("tile",)
    for key in PARTS.split():
        arrays[f"memory.byComputeSet.{key}"] = ("compute set", "tile")
        arrays[f"memory.byVertexType.{key}"] = ("vertex type", "tile")
    return arrays


@pytest.mark.parametrize(("place", "index"), _arrays().items())
def test_arrays_of_the_graph_profile_have_their_indexes(
    graph: Document, place: str, index: tuple[str, ...]
) -> None:
    size = lengths(graph)
    assert np.shape(found(graph, place)) == tuple(size[name] for name in index)


def test_an_array_with_its_indexes_the_wrong_way_round_would_not_pass(graph: Document) -> None:
    size = lengths(graph)
    for index in _arrays().values():
        assert len({size[name] for name in index}) == len(index)


def test_the_top_of_the_graph_profile_has_the_chapters_areas(graph: Document) -> None:
    areas = (
        "target optimizationInfo graph vertexTypes computeSets exchanges externalExchanges "
        "hostExchanges programs controlPrograms functionPrograms memory"
    )
    assert set(areas.split()) <= set(graph)
    assert set(TARGET.split()) <= set(graph["target"])
    assert set(graph["graph"]) == {"numComputeSets", "numEdges", "numVars", "numVertices"}


def test_the_target_adds_up(graph: Document) -> None:
    target = graph["target"]
    assert target["numTiles"] == target["numIPUs"] * target["tilesPerIPU"] == TILES
    assert target["totalMemory"] == target["bytesPerTile"] * target["numTiles"]
    assert target["totalMemory"] == target["bytesPerIPU"] * target["numIPUs"]


def test_optimization_info_maps_texts_to_doubles(graph: Document) -> None:
    info = graph["optimizationInfo"]
    assert {type(value) for value in info.values()} == {float}
    assert info["variablesInGraph"] == 5
    assert info["computeSetsInGraph"] == info["verticesInGraph"] == 2
    sent = np.sum(graph["externalExchanges"]["bytesSentByTile"])
    assert info["externalExchangeBytesSent"] == sent > 0


def test_vertices_are_counted_by_compute_set_and_type(graph: Document) -> None:
    sets, names = graph["computeSets"], graph["vertexTypes"]["names"]
    assert sets["vertexCounts"][:2] == [[1], [1]]
    assert [names[types[0]] for types in sets["vertexTypes"][:2]] == ["Twice", "Down"]
    assert sum(map(sum, sets["vertexCounts"])) == graph["graph"]["numVertices"]


def test_cycles_stand_at_compute_set_and_tile(graph: Document) -> None:
    # "count" has one vertex of 7 cycles of a thread, on tile 1, and is counted in 5 cycles.
    row = graph["computeSets"]["names"].index("count")
    estimates = graph["computeSets"]["cycleEstimates"]
    assert estimates["activeCyclesByTile"][row] == [0, 7] + [0] * 12
    assert estimates["cyclesByTile"][row] == [0, 6 * 7 + 5] + [0] * 12
    down = graph["vertexTypes"]["names"].index("Down")
    assert [r[down] for r in estimates["activeCyclesByVertexType"]].count(7) == 1


def test_control_programs_and_functions_are_programs(graph: Document) -> None:
    assert graph["controlPrograms"] == [0]
    (function,) = graph["functionPrograms"]
    calls = [program for program in graph["programs"] if program["type"] == "Call"]
    assert [call["target"] for call in calls] == [0, 0]
    below = [graph["programs"][row]["type"] for row in graph["programs"][function]["children"]]
    assert "OnTileExecute" in below


TAGS = (
    "OnTileExecute DoExchange GlobalExchange StreamCopyBegin StreamCopy StreamCopyEnd Repeat "
    "RepeatWhile If IfElse SetLocalConsensusFromVar Switch Sequence WriteUndef Sync Call"
)
OPERANDS = {
    "OnTileExecute": "computeSet", "DoExchange": "exchange", "GlobalExchange": "exchange",
    "StreamCopy": "exchange", "Call": "target", "Sync": "syncType", "Repeat": "count",
}  # fmt: skip


def test_programs_have_the_tags_of_the_chapters_table(graph: Document) -> None:
    assert {program["type"] for program in graph["programs"]} == set(TAGS.split())


@pytest.mark.parametrize(("tag", "key"), OPERANDS.items())
def test_programs_have_the_fields_of_their_tag(graph: Document, tag: str, key: str) -> None:
    for program in graph["programs"]:
        assert (key in program) == (OPERANDS.get(program["type"]) == key)
    assert any(program["type"] == tag for program in graph["programs"])


def test_only_containers_have_children_and_all_children_are_programs(graph: Document) -> None:
    programs = graph["programs"]
    with_children = {program["type"] for program in programs if "children" in program}
    assert with_children == {"Sequence", "Repeat", "RepeatWhile", "If", "IfElse", "Switch"}
    children = [row for program in programs for row in program.get("children", [])]
    roots = graph["controlPrograms"] + graph["functionPrograms"]
    assert sorted(children + roots) == list(range(len(programs)))


def test_an_if_follows_the_consensus_and_a_sync(graph: Document) -> None:
    programs = graph["programs"]
    for parent in programs:
        below = [programs[row]["type"] for row in parent.get("children", [])]
        for at, tag in enumerate(below):
            if tag in ("If", "IfElse"):
                assert below[at - 2 : at] == ["SetLocalConsensusFromVar", "Sync"]


def test_every_internal_exchange_tells_its_code_by_instruction(graph: Document) -> None:
    for program in graph["programs"]:
        assert ("memoryByInstruction" in program) == (program["type"] == "DoExchange")
        code = program.get("memoryByInstruction", {"total": 0})
        assert code["total"] == sum(value for key, value in code.items() if key != "total")
        if len(code) > 1:
            assert set(code) == set(MEMORY_BY_INSTRUCTION.split())


def test_names_are_there_where_a_program_has_one(graph: Document) -> None:
    assert all(program.get("name", "is not there") for program in graph["programs"])
    assert {"block", "double", "loop"} <= {program.get("name") for program in graph["programs"]}


def test_categories_are_those_of_the_chapter(graph: Document) -> None:
    assert set(graph["memory"]["byCategory"]) == set(CATEGORIES.split())
    assert set(graph["memory"]["byComputeSet"]) == set(PARTS.split())
    assert set(graph["memory"]["byTile"]) == set(BY_TILE.split())


def test_code_between_ipus_lies_on_the_tiles_that_take_part(graph: Document) -> None:
    total = graph["memory"]["byCategory"]["globalExchangeCode"]["total"]
    used = np.any(graph["externalExchanges"]["estimatedCyclesByTile"], axis=0)
    assert (np.array(total) > 0).tolist() == used.tolist()


def test_the_top_of_the_execution_profile_has_the_chapters_fields(execution: Document) -> None:
    assert {"profilerMode", "programTrace", "simulation"} <= set(execution)
    simulation = execution["simulation"]
    assert {"cycles", "tileCycles", "steps"} <= set(simulation)
    cycles = "activeCompute compute copySharedStructure doExchange globalExchange streamCopy sync"
    assert set(cycles.split()) <= set(simulation["tileCycles"])
    assert simulation["tileCycles"]["compute"] >= simulation["tileCycles"]["activeCompute"] > 0
    assert simulation["tileCycles"]["globalExchange"] > 0


def test_the_trace_names_the_program_of_each_step(graph: Document, execution: Document) -> None:
    trace, steps = execution["programTrace"], execution["simulation"]["steps"]
    assert [graph["programs"][row]["type"] for row in trace] == [step["type"] for step in steps]
    assert all(step.get("program", row) == row for row, step in zip(trace, steps, strict=True))


ALL = {
    "type", "program", "tileBalance", "activeTiles", "activeTileBalance", "cycles", "cyclesFrom",
    "cyclesTo",
}  # fmt: skip
OF_EXCHANGES = {"totalData", "dataBalance"}
STEPS = {
    "Sync": ({"type", "syncType"}, set()),
    "OnTileExecute": (ALL | {"threadBalance", "computeSet", "cyclesOverlapped"}, {"name"}),
    "DoExchange": (ALL | OF_EXCHANGES | {"exchange", "cyclesOverlapped"}, {"name"}),
    "GlobalExchange": (ALL | OF_EXCHANGES | {"externalExchange"}, {"name"}),
    "StreamCopy": (ALL | OF_EXCHANGES | {"hostExchange"}, {"name"}),
}
OURS = {"run"}  # what the chapter leaves open


@pytest.mark.parametrize("tag", STEPS)
def test_steps_have_the_fields_of_their_type(execution: Document, tag: str) -> None:
    steps = [step for step in execution["simulation"]["steps"] if step["type"] == tag]
    always, sometimes = STEPS[tag]
    assert steps
    for step in steps:
        assert always <= set(step) <= always | sometimes | (OURS if tag != "Sync" else set())


def test_a_step_is_named_as_its_program(graph: Document, execution: Document) -> None:
    for row, step in zip(execution["programTrace"], execution["simulation"]["steps"], strict=True):
        named = graph["programs"][row].get("name")
        assert step.get("name") == (None if step["type"] == "Sync" else named)


def test_a_step_leads_to_the_row_of_its_program(graph: Document, execution: Document) -> None:
    keys = {
        "OnTileExecute": ("computeSet", "computeSet"), "DoExchange": ("exchange", "exchange"),
        "GlobalExchange": ("externalExchange", "exchange"),
        "StreamCopy": ("hostExchange", "exchange"),
    }  # fmt: skip
    for step in execution["simulation"]["steps"]:
        if step["type"] in keys:
            mine, of_program = keys[step["type"]]
            assert step[mine] == graph["programs"][step["program"]][of_program]


def test_balances_are_worked_out_over_all_tiles(graph: Document, execution: Document) -> None:
    for step in execution["simulation"]["steps"]:
        if step["type"] == "GlobalExchange":
            lists = graph["externalExchanges"]
            row = step["externalExchange"]
            cycles = np.array(lists["estimatedCyclesByTile"][row])
            data = np.array(lists["bytesSentByTile"][row]) + lists["bytesReceivedByTile"][row]
            assert step["activeTiles"] == (cycles > 0).sum()
            assert step["tileBalance"] == pytest.approx(cycles.mean() / cycles.max())
            active = cycles[cycles > 0]
            assert step["activeTileBalance"] == pytest.approx(active.mean() / active.max())
            assert step["totalData"] == data.sum() // 2
            assert step["dataBalance"] == pytest.approx(data.mean() / data.max())


def test_the_steps_of_a_run_end_with_its_cycles(execution: Document) -> None:
    simulation = execution["simulation"]
    ends = [step["cyclesTo"] for step in simulation["steps"] if "cyclesTo" in step]
    ends += simulation["syncs"]["cyclesTo"]
    assert max(ends) == simulation["cycles"]
