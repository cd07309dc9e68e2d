"""Which format a file has, what a directory holds, and the one line that says what is wrong."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pva.errors import InconsistentDataError, PvaError
from pva.formats import registry
from pva.formats.documents import completion
from tests.builders import small_report

KNOWN = (
    "known formats: profile.pop, an SQLite database (.pop); a graph or execution profile as JSON "
    "(.json); a graph or execution profile as CBOR (.cbor); a directory of tables in Parquet "
    "(.parquet); a report directory"
)
DATA = small_report()
VALUES = {name: registry.value_of(DATA, name) for name in ("graph", "execution", "debug")}


def refused(call: Callable[..., object], *arguments: object) -> str:
    """Return what the error of a call says."""
    with pytest.raises(PvaError) as raised:
        call(*arguments)
    return str(raised.value)


@pytest.mark.parametrize(
    ("content", "suffix", "name"),
    [(content, ".x", "cbor") for content in (b"\xa0", b"\xbb", b"\xbf")]
    + [(content, ".pop", "cbor") for content in (b"\xa0", b"\xbb", b"\xbf")]
    + [(content, ".cbor", "cbor") for content in (b" \n", b"\xc0", b"\xdb", b"\xd9\xd9\xf7\xa0")]
    + [(b"\xd9\xd9\xf7\xa0", suffix, "cbor") for suffix in (".x", ".json")]
    + [(content, ".JSON", "json") for content in (b" \n", b"\xc0", b"{", b"\xef\xbb\xbf {")],
)  # fmt: skip
def test_a_file_has_the_format_of_its_first_byte_or_of_its_suffix(
    tmp_path: Path, content: bytes, suffix: str, name: str
) -> None:
    path = tmp_path / f"report{suffix}"
    path.write_bytes(content)
    assert registry.detect(path).name == name
    assert registry.detect(str(path)).name == name


@pytest.mark.parametrize(
    ("content", "suffix"),
    [(b"\xdc", ".cbor"), (b"\xbc", ".cbor"), (b"\x9f", ".cbor"), (b" ", ".x"),
     (b"[1, 2, 3]", ".json")],
)  # fmt: skip
def test_a_file_of_no_format_is_refused_with_its_begin(
    tmp_path: Path, content: bytes, suffix: str
) -> None:
    path = tmp_path / f"report{suffix}"
    path.write_bytes(content)
    assert refused(registry.read, path) == f"{path}: begins with {content[:8]!r}; {KNOWN}"


def test_what_is_no_file_or_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.pop").touch()
    os.mkfifo(tmp_path / "pipe")
    reasons = {
        "empty.pop": f"empty; {KNOWN}", "pipe": f"no file; {KNOWN}",
        "none": "no such file or directory; give a report",
    }  # fmt: skip
    for name, reason in reasons.items():
        assert refused(registry.read, tmp_path / name) == f"{tmp_path / name}: {reason}"
    assert refused(registry.read, "a\0b") == (
        "'a\\x00b': embedded null byte; a report that can be read"
    )


def test_a_directory_without_a_report_names_those_below(tmp_path: Path) -> None:
    nothing = f"{tmp_path}: no report in this directory; "
    assert refused(registry.read, tmp_path) == f"{nothing}profile.pop is looked for"
    for name in ("training", "inference"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "profile.pop").touch()
    below = "give one of those below: inference, training"
    assert refused(registry.read, tmp_path) == nothing + below
    registry.write(DATA, tmp_path / "debug.cbor")  # which alone is no report
    assert refused(registry.read, tmp_path) == nothing + below


@pytest.mark.parametrize(
    ("error", "problem"), [(PermissionError(13, "denied"), "denied"), (OSError("odd"), "odd")]
)
def test_a_directory_that_cannot_be_read_is_an_error_of_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, problem: str
) -> None:
    def fails(_: Path) -> None:
        raise error

    monkeypatch.setattr(Path, "iterdir", fails)
    line = f"{tmp_path}: {problem}; a report directory that can be read"
    assert refused(registry.directory_files, tmp_path) == line
    monkeypatch.setattr(Path, "is_dir", fails)
    assert refused(registry.read, tmp_path) == f"'{tmp_path}': {problem}; the path of a report"


def test_a_directory_has_one_file_of_each_kind(tmp_path: Path) -> None:
    names = ("a.pop", "b.pop", "graph.json", "execution.cbor", "execution.json", "debug.json",
             "framework.json", "app.json", "b.pvti", "a.pvti", "notes")  # fmt: skip
    for name in names:
        (tmp_path / name).touch()
    (tmp_path / "profile.pop").mkdir()  # a directory is no file
    assert {kind: file.name for kind, file in registry.directory_files(tmp_path).items()} == {
        "profile": "a.pop", "graph": "graph.json", "execution": "execution.cbor",
        "debug": "debug.json", "framework": "framework.json", "app": "app.json", "trace": "a.pvti",
    }  # fmt: skip


def test_a_profile_is_read_with_its_debug_information_and_without_other_documents(
    tmp_path: Path,
) -> None:
    registry.write(DATA.select("graph", "execution"), tmp_path / "profile.pop")
    registry.write(DATA, tmp_path / "debug.cbor")
    (tmp_path / "graph.json").write_text("{")
    assert registry.read(tmp_path) == DATA
    assert registry.read(tmp_path).name == str(tmp_path)


def test_a_directory_of_one_document_is_a_report_of_it(tmp_path: Path) -> None:
    for name in ("graph", "execution"):
        folder = tmp_path / name
        folder.mkdir()
        registry.write(DATA, folder / f"{name}.json")
        assert registry.read(folder) == DATA.select(name)


def test_documents_are_read_with_their_debug_information(tmp_path: Path) -> None:
    for name in ("graph", "debug"):
        registry.write(DATA, tmp_path / f"{name}.json")
    assert registry.read(tmp_path) == DATA.select("graph", "debug")


def test_a_path_that_is_none_is_an_error_of_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: Path) -> None:
        raise ValueError("odd")

    monkeypatch.setattr(Path, "is_dir", fails)
    assert refused(registry.read, "x") == "'x': odd; the path of a report"


def test_a_directory_of_parquet_is_a_report(tmp_path: Path) -> None:
    registry.write(DATA, tmp_path / "tables.parquet")
    assert registry.read(tmp_path / "tables.parquet") == DATA


@pytest.mark.parametrize(
    ("file", "format", "name"),
    [("x.POP", None, "pop"), ("x.json", None, "json"), ("debug.json", None, "json"),
     ("debug.cbor", None, "debug"), ("x.cbor", None, "cbor"), ("x.json", "cbor", "cbor"),
     ("debug.cbor", "cbor", "cbor"), ("x", "debug", "debug")],
)  # fmt: skip
def test_a_report_is_written_in_the_format_of_its_name_or_its_suffix(
    monkeypatch: pytest.MonkeyPatch, file: str, format: str | None, name: str
) -> None:
    written: list[str] = []
    entries = tuple(
        replace(entry, write=lambda _, path, name=entry.name: written.append(f"{name}: {path}"))
        for entry in registry.FORMATS
    )
    monkeypatch.setattr(registry, "FORMATS", entries)
    monkeypatch.setattr(registry, "BY_NAME", {entry.name: entry for entry in entries})
    registry.write(DATA, file, format)
    assert written == [f"{name}: {file}"]


def test_a_report_is_not_written_in_a_format_that_there_is_not(tmp_path: Path) -> None:
    path = tmp_path / "report.xyz"
    assert (
        refused(registry.write, DATA, path) == f"{path}: no format has the suffix '.xyz'; {KNOWN}"
    )
    assert refused(registry.write, DATA, path, "XXXX") == (
        f"{path}: no format 'XXXX'; there are pop, json, cbor, plain, debug, parquet"
    )
    assert not path.exists()


def test_documents_as_values_make_a_report() -> None:
    assert registry.of_values(**VALUES) == DATA
    assert registry.of_values(**VALUES).name == "profile"
    assert registry.of_values(graph=VALUES["graph"], execution=None) == DATA.select("graph")


def test_a_graph_profile_and_an_execution_profile_make_a_report(tmp_path: Path) -> None:
    registry.write(DATA, tmp_path / "profile.pop")  # of which each gives its document
    both = registry.of_profiles(VALUES["graph"], VALUES["execution"])
    assert both == DATA.select("graph", "execution")
    assert both.name == "graph profile"
    assert registry.of_profiles(VALUES["graph"]) == DATA.select("graph")
    assert registry.of_profiles(tmp_path, VALUES["execution"]) == DATA
    assert registry.of_profiles(VALUES["graph"], tmp_path / "profile.pop") == both
    assert registry.of_profiles(str(tmp_path / "profile.pop")) == DATA


def test_profiles_in_the_wrong_order_are_refused() -> None:
    graph, execution = VALUES["graph"], VALUES["execution"]
    remedy = "give the graph profile first, then its execution profile"
    line = f"graph profile: no graph profile, but one of the execution; {remedy}"
    assert refused(registry.of_profiles, execution) == line
    line = f"execution profile: no execution profile, but one of the graph; {remedy}"
    assert refused(registry.of_profiles, graph, graph) == line


def test_a_machine_that_cannot_be_is_refused_from_values_and_from_files(tmp_path: Path) -> None:
    values = {**VALUES["graph"], "target": {**VALUES["graph"]["target"], "tilesPerIPU": -1}}
    (tmp_path / "graph.json").write_bytes(registry.encoded(values, "json"))
    for read, given in (
        (registry.read, tmp_path), (registry.of_profiles, values),
        (lambda graph: registry.of_values(graph=graph), values),
    ):  # fmt: skip
        with pytest.raises(InconsistentDataError):
            read(given)


def test_values_are_encoded_and_json_may_be_indented() -> None:
    assert registry.encoded({"a": 1}, "json") == b'{"a":1}\n'
    assert registry.encoded({"a": 1}, "json", pretty=True) == b'{\n  "a": 1\n}\n'
    assert registry.encoded({"a": 1}, "cbor") == b"\xa1\x61a\x01"
    assert registry.value_of(DATA, "graph")["target"]["tilesPerIPU"] == 5


def test_a_json_file_beside_a_report_is_read_or_refused_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "app.json"
    assert refused(registry.load_json, path) == (
        f"{path}: no such file; give the path of a JSON file"
    )
    path.write_text('{"a": [1]}')
    assert registry.load_json(path) == {"a": [1]}
    path.write_text("{")
    assert refused(registry.load_json, path).startswith(f"{path}: ")


def test_a_profile_of_tables_without_arrays_is_one() -> None:
    types = {"vertexTypes": VALUES["graph"]["vertexTypes"]}
    data = registry.of_profiles(types)
    names = data.column("vertex_types", "name").tolist()
    assert names == DATA.column("vertex_types", "name").tolist()


@pytest.mark.parametrize("foreign", [False, True])
def test_what_another_writer_left_out_is_completed_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, foreign: bool
) -> None:
    completed = []
    monkeypatch.setattr(completion, "completed", lambda data: completed.append(data) or data)
    data = small_report()
    data.foreign = foreign
    assert registry._opened(data) is data
    assert completed == [data] * foreign
