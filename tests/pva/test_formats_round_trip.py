"""What is written is read again, in every format and from every mixture of layouts."""

from pathlib import Path
from typing import Any

import cbor2
import numpy as np
import orjson
import pytest
from hypothesis import HealthCheck, given, settings

from pva import schema
from pva.data.dataset import Dataset
from pva.errors import DamagedFileError, InconsistentDataError
from pva.formats import registry
from pva.formats.database import pop
from pva.formats.documents import (
    cbor_profile,
    cbor_values,
    document,
    json_numbers,
    json_profile,
    typed_arrays,
)
from pva.formats.documents.places import INSIDE
from tests.builders import small_report, write_report
from tests.strategies import datasets

FEW = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
FORMATS = ("pop", "json", "cbor", "plain")
SMALL_PARTS = {json_numbers: {"LONG": 8, "MANY": 40}, cbor_values: {"FEW": 2, "MANY": 3}}
MEASURED = [array.name for array in schema.ARRAYS if array.replaced]
ONCE = ("tile_clock", "vertex_compute_set", "vertex_vertex_type")


@pytest.mark.parametrize("name", FORMATS)
def test_the_small_report_is_read_as_it_was_written(tmp_path: Path, name: str) -> None:
    registry.write(small_report(), tmp_path / "report", name)
    assert registry.read(tmp_path / "report") == small_report()


@pytest.mark.parametrize("name", FORMATS)
@FEW
@given(data=datasets())
def test_any_dataset_is_read_as_it_was_written(tmp_path: Path, name: str, data: Dataset) -> None:
    registry.write(data, tmp_path / "report", name)
    assert registry.read(tmp_path / "report") == data


def test_a_report_directory_is_read_with_its_debug_information(tmp_path: Path) -> None:
    assert registry.read(write_report(tmp_path / "report")) == small_report()


@pytest.mark.parametrize("suffix", [".json", ".cbor"])
def test_documents_in_a_directory_make_one_report(tmp_path: Path, suffix: str) -> None:
    for name in ("graph", "execution", "debug"):
        registry.write(small_report(), tmp_path / f"{name}{suffix}")
    assert registry.read(tmp_path) == small_report()


@pytest.mark.parametrize("name", ["json", "cbor", "plain", "debug"])
def test_a_dataset_is_written_to_the_same_bytes_again(tmp_path: Path, name: str) -> None:
    for file in ("first", "second"):
        registry.write(small_report(), tmp_path / file, name)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_the_graph_profile_has_the_documented_keys() -> None:
    graph = orjson.loads(json_profile.encoded(document.to_document(small_report(), "graph")))
    assert graph["target"]["tilesPerIPU"] == 5
    assert graph["programs"][0] == {"type": "Sequence", "children": [1, 2, 3, 13, 8, 9, 10]}
    assert graph["programs"][6]["computeSet"] == 0
    assert graph["programs"][5]["memoryByInstruction"]["receiveMux"] == 28
    assert graph["computeSets"]["vertexCounts"] == [[10], [1, 2], [5]]
    assert graph["computeSets"]["vertexTypes"] == [[0], [1, 2], [1]]
    message = graph["memory"]["byCategory"]["message"]
    assert message["nonInterleaved"]["overlapped"] == [4] + 9 * [0]
    assert message["total"] == 10 * [4]
    assert graph["controlPrograms"] == [0]


def test_the_execution_profile_repeats_what_the_chapter_repeats() -> None:
    nested = document.to_document(small_report(), "execution")
    execution = orjson.loads(json_profile.encoded(nested))
    assert execution["profilerMode"] == "IPU_MODEL"
    assert execution["programTrace"][:4] == [1, 2, 5, 6]
    steps = execution["simulation"]["steps"]
    assert (steps[3]["name"], steps[3]["computeSet"]) == ("multiply", 0)
    assert (steps[1]["hostExchange"], steps[9]["externalExchange"]) == (0, 0)
    assert (steps[0]["type"], steps[0]["syncType"]) == ("Sync", "External")


def nested_report() -> dict[str, Any]:
    profile: dict[str, Any] = orjson.loads(
        json_profile.encoded(document.to_file(small_report(), "report"))
    )
    return profile


def test_columns_may_stand_where_records_are_usual_and_the_other_way_round() -> None:
    profile = nested_report()
    graph, execution = profile["graphProfile"], profile["executionProfile"]
    runs = execution["runs"]
    times = [run.pop("microseconds") for run in runs]
    execution["runs"] = {key: [run[key] for run in runs] for key in runs[0]}
    execution["runs"]["microseconds"] = {key: [t[key] for t in times] for key in ("start", "end")}
    lists = graph["vertexTypes"]
    graph["vertexTypes"] = [
        {"names": name, "sizes": size}
        for name, size in zip(lists["names"], lists["sizes"], strict=True)
    ]
    assert document.from_file("report", profile) == small_report()


def test_the_slips_of_the_chapter_are_understood() -> None:
    profile = nested_report()
    steps = profile["executionProfile"]["simulation"]["steps"]
    for step in steps:
        step["type"] = {"Sync": "sync"}.get(step["type"], step["type"])
    profile["graphProfile"]["programs"][3]["type"] = "SharedStructureCopy"
    read = document.from_file("report", profile)
    assert set(read.texts("steps", "type")[[0, 12]]) == {"Sync"}
    assert read.texts("programs", "type")[3] == "CopySharedStructure"


def test_programs_that_steps_do_not_tell_come_from_the_trace() -> None:
    profile = nested_report()
    for step in profile["executionProfile"]["simulation"]["steps"]:
        step.pop("program", None)
    assert document.from_file("report", profile) == small_report()


def test_a_sync_has_its_type_alone_and_the_rest_stands_beside_the_steps() -> None:
    simulation = nested_report()["executionProfile"]["simulation"]
    assert simulation["steps"][0] == {"type": "Sync", "syncType": "External"}
    assert simulation["syncs"]["step"] == [0, 8, 12, 20]


def test_syncs_that_tell_all_of_themselves_are_understood() -> None:
    profile = nested_report()
    simulation = profile["executionProfile"]["simulation"]
    syncs = simulation.pop("syncs")
    for row, step in enumerate(syncs.pop("step")):
        simulation["steps"][step] |= {key: values[row] for key, values in syncs.items()}
    assert document.from_file("report", profile) == small_report()


@pytest.mark.parametrize("step", [-1, 24])
def test_a_sync_that_is_no_step_is_refused(step: int) -> None:
    profile = nested_report()
    profile["executionProfile"]["simulation"]["syncs"]["step"] = [0, 8, 12, step]
    with pytest.raises(DamagedFileError, match=f"simulation.syncs.step: found {step}; 0 to 23"):
        document.from_file("report", profile)


def test_live_variables_may_be_listed_at_each_step() -> None:
    profile = nested_report()
    graph = profile["graphProfile"]
    intervals = graph["variables"].pop("intervals")
    del graph["variables"]["pieces"]
    for number, step in enumerate(graph["memory"]["liveness"]["notAlwaysLive"]["steps"]):
        del step["bytes"]
        rows = zip(intervals["variable"], intervals["begin"], intervals["end"], strict=True)
        step["variables"] = [row for row, begin, end in rows if begin <= number < end]
    assert document.from_file("report", profile) == small_report(variable_pieces=None)


def test_missing_keys_and_sections_are_no_fault() -> None:
    graph = {"target": {"type": "IPU", "numTiles": 2}, "memory": {"byTile": {"total": [3, 4]}}}
    data = document.from_file("report", graph)
    assert data.tables == ("target", "memory_by_tile")
    assert data.column("memory_by_tile", "total").tolist() == [3, 4]
    assert data.column("memory_by_tile", "overflowed").tolist() == [-1, -1]


@pytest.mark.parametrize(
    ("tag", "dtype"), [(64, "u1"), (77, "<i2"), (66, ">u4"), (86, "<f8"), (80, ">f2")]
)
def test_typed_arrays_have_the_tags_of_the_standard(tag: int, dtype: str) -> None:
    values = np.array([1, 2, 3], dtype=dtype)
    decoded = typed_arrays.decoded(cbor2.CBORTag(tag, values.tobytes()))
    assert decoded.tolist() == [1, 2, 3]


def test_integers_take_the_narrowest_type() -> None:
    highest = [255, 256, 65536, 2**32]
    assert [typed_arrays.encoded(np.array([high])).tag for high in highest] == [64, 69, 70, 79]
    assert [typed_arrays.encoded(np.array([low])).tag for low in (-1, -129)] == [72, 77]


def test_a_shape_needs_tag_40_and_may_come_column_by_column() -> None:
    values = np.arange(6).reshape(2, 3)
    assert typed_arrays.encoded(values).tag == 40
    assert typed_arrays.decoded(typed_arrays.encoded(values).value[1]).tolist() == list(range(6))
    by_column = cbor2.CBORTag(1040, [[2, 3], [0, 3, 1, 4, 2, 5]])
    assert typed_arrays.decoded(by_column).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_plain_cbor_has_no_tag(tmp_path: Path) -> None:
    cbor_profile.write(small_report(), tmp_path / "graph.cbor", plain=True)
    tags: list[int] = []
    cbor2.loads(
        (tmp_path / "graph.cbor").read_bytes(), tag_hook=lambda tag, _: tags.append(tag.tag)
    )
    assert tags == []


def rows_of_run(table: str, run: int) -> dict[str, Any]:
    per_run = {"runs": 1, "steps": 12, "steps_by_ipu": 24}[table]
    return {
        name: values[run * per_run : (run + 1) * per_run]
        for name, values in small_report().table(table).items()
    }


def test_a_report_grows_run_by_run_and_open_ones_keep_what_they_show(tmp_path: Path) -> None:
    path, whole = tmp_path / "profile.pop", small_report()
    writer = pop.ReportWriter(path, whole.select("graph", "debug"))
    seen = []
    for run in range(2):
        seen.append(pop.read(path))
        tables = {name: rows_of_run(name, run) for name in ("runs", "steps", "steps_by_ipu")}
        tables |= {name: whole.table(name) for name in ("execution", "tile_cycles")}
        tables |= {} if run else {name: whole.table(name) for name in ("blocks", "other_runs")}
        arrays = {name: run * whole.array(name) for name in MEASURED}
        writer.append_run(
            tables, arrays | ({} if run else {name: whole.array(name) for name in ONCE})
        )
    seen.append(pop.read(path))
    writer.close()
    assert pop.read(path) == whole
    assert [before.length("steps") for before in seen] == [0, 12, 24]


def test_what_is_measured_again_takes_the_place_of_what_was_measured(tmp_path: Path) -> None:
    path, data = tmp_path / "profile.pop", small_report()
    large = np.arange(300_000 * 10).reshape(300_000, 10)  # of several chunks
    name = "measured_host_exchange_cycles"
    writer = pop.ReportWriter(path, small_report(**{name: large}).select("execution"))
    before = pop.read(path)
    writer.append_run({}, {name: data.array(name)})
    writer.close()
    assert pop.read(path).array(name).tolist() == data.array(name).tolist()
    np.testing.assert_array_equal(before.array(name), large)


def test_a_report_may_be_written_over_itself(tmp_path: Path) -> None:
    path = tmp_path / "profile.pop"
    pop.write(small_report(), path)
    pop.write(pop.read(path), path)
    assert pop.read(path) == small_report()
    assert [entry.name for entry in tmp_path.iterdir()] == ["profile.pop"]


def test_some_rows_of_an_array_are_read_without_the_rest(tmp_path: Path) -> None:
    clock = np.random.default_rng(0).integers(0, 2**40, size=(30_000, 10))
    pop.write(small_report(tile_clock=clock), tmp_path / "profile.pop")
    rows = pop.read(tmp_path / "profile.pop").rows("tile_clock", 20_000, 20_003)
    assert np.array_equal(rows, clock[20_000:20_003])


@pytest.mark.parametrize(("inside", "around"), INSIDE.items())
@pytest.mark.parametrize("suffix", ["json", "cbor", "pop"])
def test_nothing_is_left_out_in_silence(
    tmp_path: Path, inside: str, around: str, suffix: str
) -> None:
    others = [name for name, place in INSIDE.items() if place == around and name != inside]
    data = small_report(**dict.fromkeys([around, *others]))
    if suffix == "pop":
        registry.write(data, tmp_path / "report.pop")
        assert registry.read(tmp_path / "report.pop").has(inside)
    else:
        with pytest.raises(InconsistentDataError, match=f"{inside} without {around}; profile.pop"):
            registry.write(data, tmp_path / f"report.{suffix}")


@pytest.mark.parametrize("name", ["json", "cbor", "plain"])
@FEW
@given(data=datasets())
def test_documents_that_are_read_in_small_parts_are_the_same(
    tmp_path: Path, name: str, data: Dataset
) -> None:
    registry.write(data, tmp_path / "report", name)
    with pytest.MonkeyPatch.context() as patch:
        for module, sizes in SMALL_PARTS.items():
            for size, value in sizes.items():
                patch.setattr(module, size, value)
        assert registry.read(tmp_path / "report") == data


@pytest.mark.parametrize("name", ["json", "cbor", "plain"])
def test_the_small_report_is_the_same_in_small_parts(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.write(small_report(), tmp_path / "report", name)
    for module, sizes in SMALL_PARTS.items():
        for size, value in sizes.items():
            monkeypatch.setattr(module, size, value)
    assert registry.read(tmp_path / "report") == small_report()


INNER = [name for name in INSIDE if name in schema.TABLE]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("inner", INNER)
def test_an_inner_table_that_was_not_recorded_is_no_table_of_no_rows(
    tmp_path: Path, name: str, inner: str
) -> None:
    nothing = {column: values[:0] for column, values in small_report().table(inner).items()}
    for rows in (None, nothing):
        arrays = ("vertex_count_by_tile",) if inner == "compute_set_vertices" else ()
        data = small_report(**{inner: rows}, **dict.fromkeys(arrays))
        registry.write(data, tmp_path / "report", name)
        back = registry.read(tmp_path / "report")
        assert back == data
        assert back.has(inner) == (rows is not None)


@pytest.mark.parametrize("name", FORMATS)
def test_an_inner_array_that_was_not_recorded_is_no_array_of_no_rows(
    tmp_path: Path, name: str
) -> None:
    steps, inner = ("liveness_steps", "variable_intervals"), "liveness_bytes_by_ipu"
    whole = small_report()
    none = {t: {c: v[:0] for c, v in whole.table(t).items()} for t in steps}
    for rows in (None, whole.array(inner)[:0]):
        data = small_report(**none, **{inner: rows})
        registry.write(data, tmp_path / "report", name)
        assert registry.read(tmp_path / "report") == data
