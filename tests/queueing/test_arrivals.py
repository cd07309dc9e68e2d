from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pva.errors import PvaError
from pva.queueing.arrivals import read_arrivals


def written(path: Path, content: object) -> str:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


def test_a_poisson_process_has_its_rate_and_is_the_same_again() -> None:
    first, again = (read_arrivals("poisson:2000", requests=20_000, seed=3) for _ in range(2))
    assert first.at_ns.tolist() == again.at_ns.tolist()
    assert np.diff(first.at_ns).mean() == pytest.approx(500_000, rel=0.03)
    assert np.diff(first.at_ns).std() == pytest.approx(500_000, rel=0.03)  # as exponential gaps


def test_intervals_are_microseconds_between_requests(tmp_path: Path) -> None:
    found = read_arrivals(written(tmp_path / "i.txt", "100\n20\n\n5\n"), rows=4)
    assert found.at_ns.tolist() == [0, 20_000, 25_000]
    assert found.rows.tolist() == [4, 4, 4]


def test_an_export_of_perf_analyzer_names_the_load_that_is_meant(tmp_path: Path) -> None:
    loads = [
        {"experiment": {"mode": "concurrency", "value": value},
         "requests": [{"timestamp": stamp, "response_timestamps": [stamp + 9]} for stamp in stamps],
         "window_boundaries": []}
        for value, stamps in ((1, [70, 10]), (4, [5, 6, 8]))
    ]  # fmt: skip
    path = written(tmp_path / "p.json", {"experiments": loads, "version": "1"})
    assert read_arrivals(path, experiment=1).at_ns.tolist() == [0, 60]
    assert read_arrivals(path, experiment=2, requests=2).at_ns.tolist() == [0, 1]
    with pytest.raises(PvaError, match="2 experiments; .*1 is concurrency 1; 2 is concurrency 4"):
        read_arrivals(path)


def test_a_trace_of_triton_gives_arrivals_and_rows_in_any_order(tmp_path: Path) -> None:
    entries = [
        {"id": 2, "timestamps": [{"name": "COMPUTE_START", "ns": 900}]},
        {"id": 2, "timestamps": [{"name": "QUEUE_START", "ns": 400}]},
        {"id": 1, "model_name": "m", "model_version": 1},
        {"id": 1, "activity": "TENSOR_QUEUE_INPUT", "tensor": {"name": "x", "shape": "3,16"}},
        {"id": 1, "timestamps": [{"name": "REQUEST_START", "ns": 150}]},
        {"id": 3, "parent_id": 1, "model_name": "inner", "model_version": 1},
        {"id": 3, "timestamps": [{"name": "QUEUE_START", "ns": 200}]},
    ]
    found = read_arrivals(written(tmp_path / "t.json", entries), rows=2)
    assert (found.at_ns.tolist(), found.rows.tolist()) == ([0, 250], [3, 2])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "empty"),
        ("requests\n", "begins with"),
        ("12\n-4\n", "line 2: '-4'; whole microseconds"),
        ('{"experiments": 4}', "Expected `array`"),
        ('[{"id": 1, "model_name": "m"}]', "no request"),
        ('[{"id": "a", "model_name": "m"}]', "objects of part 0: Expected `int`"),
    ],
)
def test_a_file_that_is_no_list_of_arrivals_is_one_line(
    tmp_path: Path, content: str, words: str
) -> None:
    with pytest.raises(PvaError, match=words) as raised:
        read_arrivals(written(tmp_path / "bad.json", content))
    assert "bad.json" in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize("rate", ["", "fast", "0", "-1", "nan", "1e12"])
def test_a_rate_that_is_none_is_one_line(rate: str) -> None:
    with pytest.raises(PvaError, match="no rate"):
        read_arrivals(f"poisson:{rate}")
