"""The folder of compiled programs: made once, taken by whoever wants the same, damaged or not."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest

from pva import openReport, schema
from simulator import popart
from simulator.popart.simulate import Request, simulate_model
from simulator.popef import cache
from tests.popart.models import tiny
from tests.popef.files import W, X, product

TIMES = {"start_microseconds", "end_microseconds", "trace_begin", "trace_end"}


@pytest.fixture
def logged(monkeypatch):
    lines: list[str] = []
    monkeypatch.setattr(cache, "log", lambda *parts: lines.append(" ".join(parts[2:])))
    return lines


@pytest.fixture
def compiled(monkeypatch):
    """Count the sessions that compile."""
    made: list[str] = []
    built = popart.InferenceSession._built
    monkeypatch.setattr(
        popart.InferenceSession, "_built", lambda self: made.append(self._what) or built(self)
    )
    return made


def answer(folder, **options):
    chosen = popart.SessionOptions(**options)
    if folder is not None:
        chosen.enableEngineCaching, chosen.cachePath = True, str(folder)
    made = popart.InferenceSession(product(), popart.DataFlow(1, ["y"]), tiny(), userOptions=chosen)
    made.prepareDevice()
    anchors = made.initAnchorArrays()
    made.run(popart.PyStepIO({"x": X}, anchors))
    return anchors["y"]


def test_the_same_model_is_compiled_once_and_others_by_themselves(tmp_path, compiled):
    for _ in range(2):
        np.testing.assert_allclose(answer(tmp_path), X @ W)
    assert len(compiled) == 1
    answer(tmp_path, logDir="elsewhere")  # no part of the program
    assert len(compiled) == 1
    answer(tmp_path, partialsTypeMatMuls="half")
    assert len(compiled) == 2 == len(list(tmp_path.glob("*.popef")))


def test_the_environment_names_a_folder_for_all_sessions(tmp_path, compiled, monkeypatch):
    monkeypatch.setenv("POPLAR_EXECUTABLE_CACHE_PATH", str(tmp_path / "kept"))
    for _ in range(2):
        answer(None)
    assert len(compiled) == 1 and len(list((tmp_path / "kept").glob("*.popef"))) == 1


def test_a_damaged_file_is_compiled_again_with_one_warning(tmp_path, compiled, logged):
    answer(tmp_path)
    (file,) = tmp_path.glob("*.popef")
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    logged.clear()
    np.testing.assert_allclose(answer(tmp_path), X @ W)
    assert [line for line in logged if line.startswith("WARN")] == [
        line for line in logged if "compiled again" in line
    ]
    assert len(compiled) == 2 and sum("compiled again" in line for line in logged) == 1
    answer(tmp_path)
    assert len(compiled) == 2


def test_a_folder_that_cannot_be_written_to_is_said_and_the_model_runs(tmp_path, logged):
    (tmp_path / "file").write_bytes(b"")
    np.testing.assert_allclose(answer(tmp_path / "file"), X @ W)
    assert sum("the program is not kept" in line for line in logged) == 1


def test_a_file_of_somebody_else_stays_as_it_is(tmp_path, logged):
    answer(tmp_path)
    (file,) = tmp_path.glob("*.popef")
    file.write_bytes(b"my own")
    np.testing.assert_allclose(answer(tmp_path), X @ W)
    assert file.read_bytes() == b"my own"


def test_who_wants_the_same_waits_for_the_one_who_makes_it(tmp_path):
    made, took = [], []

    def make():
        made.append(1)
        time.sleep(0.2)

    def write(writer):
        from simulator import popef

        with popef.FileWriter(tmp_path / "seed.popef") as seed:
            seed.write(popef.Metadata(executable="p"))
            seed.createExecutable("p").write(b"x")
        reader = popef.Reader()
        reader.parseFile(tmp_path / "seed.popef")
        writer.write(reader.metadata()[0])
        writer.createExecutable("p").write(b"x")

    def ask():
        took.append(cache.cached(tmp_path / "kept", "digest", lambda model: None, make, write))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1 and sorted(took) == [False, True, True, True]


def test_what_was_not_used_for_the_longest_time_makes_room(tmp_path, monkeypatch, compiled):
    for kind in ("half", "float"):
        answer(tmp_path, partialsTypeMatMuls=kind)
    files = sorted(tmp_path.glob("*.popef"), key=lambda file: file.stat().st_mtime_ns)
    size = max(file.stat().st_size for file in files)
    os.utime(files[1], (1, 1))
    answer(tmp_path, partialsTypeMatMuls="half")  # used: now it is the newest
    (tmp_path / "notes.popef").write_bytes(b"mine" * size)
    monkeypatch.setenv("POPLAR_EXECUTABLE_CACHE_LIMIT", str(size * 5 // 2))
    answer(tmp_path)
    assert files[0].exists() and not files[1].exists() and (tmp_path / "notes.popef").exists()
    assert len(compiled) == 3


def equal(one, other):
    floats = np.asarray(one).dtype.kind == "f"
    return np.array_equal(one, other, equal_nan=floats)


def differing(first, second):
    """Name the columns and arrays in which two reports differ."""
    one, other = (openReport(folder).dataset for folder in (first, second))
    tables = [table.name for table in schema.TABLES if one.has(table.name)]
    arrays = [array.name for array in schema.ARRAYS if one.has(array.name)]
    assert all(map(other.has, (*tables, *arrays)))
    columns = {
        name
        for table in tables
        for name, values in one.table(table).items()
        if not equal(values, other.table(table)[name])
    }
    return columns | {name for name in arrays if not equal(one.array(name), other.array(name))}


def test_a_report_of_a_kept_program_differs_in_times_alone(tmp_path, monkeypatch, compiled):
    model = tmp_path / "net.onnx"
    model.write_bytes(product().SerializeToString())
    folders = [tmp_path / name / "report" for name in "abc"]
    for folder, kept in zip(folders, [None, tmp_path / "kept", tmp_path / "kept"], strict=True):
        folder.parent.mkdir()
        simulate_model(model, folder, Request(target="tiny", cache=kept))
    assert len(compiled) == 2
    assert differing(*folders[1:]) <= TIMES
    assert differing(folders[0], folders[2]) <= TIMES | {"created"}


def test_options_of_a_report_may_differ_from_those_of_the_one_that_was_kept(tmp_path):
    model = tmp_path / "net.onnx"
    model.write_bytes(product().SerializeToString())
    for wanted in (True, False):
        options = {schema.LOWERED_OPTION: wanted}
        request = Request(target="tiny", cache=tmp_path / "kept", options=options)
        simulate_model(model, tmp_path / str(wanted), request)
        report = openReport(tmp_path / str(wanted)).dataset
        assert report.has("variable_pieces") == wanted
        texts = dict(zip(*report.table("engine_options").values(), strict=True))
        assert texts[schema.LOWERED_OPTION] == str(wanted).lower()
