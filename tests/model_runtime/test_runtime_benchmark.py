"""The benchmark prints what requests took, on host and device."""

from __future__ import annotations

import json

import pytest

from simulator.model_runtime import ModelRunner, benchmark
from tests.popef.files import X, session


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("popef") / "net.popef"
    session().saveExecutable(file)
    return file


def test_figures_of_host_and_device_follow_from_requests(path, capsys):
    assert benchmark.main([str(path), "--iterations", "20", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    with ModelRunner(path) as runner:
        cycles = runner.execute({"x": X}).cycles
        clock = runner.clock_frequency
    assert (found["requests"], found["rows"], found["device_cycles"]) == (20, 2, cycles)
    assert found["device_seconds"] == pytest.approx(20 * cycles / clock)
    assert found["device_rows_per_second"] == pytest.approx(2 * clock / cycles)
    assert found["latency_min"] <= found["latency_average"] <= found["latency_max"]
    assert found["latency_p99"] <= found["latency_max"] < found["seconds"]
    assert found["rows_per_second"] == pytest.approx(2 * 20 / found["seconds"])


def test_requests_of_three_rows_take_two_batches_of_two(path, capsys):
    assert benchmark.main([str(path), "--iterations", "4", "--rows", "3", "--json"]) == 0
    with ModelRunner(path) as runner:
        cycles = runner.execute({"x": X}).cycles
    assert json.loads(capsys.readouterr().out)["device_cycles"] == 2 * cycles


def test_the_text_names_whose_figures_they_are(path, capsys):
    assert benchmark.main([str(path), "--iterations", "3"]) == 0
    text = capsys.readouterr().out
    assert [line.split()[0] for line in text.splitlines()] == [
        "requests", "latency", "throughput", "device",
    ]  # fmt: skip
    assert "P99" in text and "of the modelled machine" in text


def test_a_file_that_is_none_is_one_line(tmp_path, capsys):
    assert benchmark.main([str(tmp_path / "none.popef")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
