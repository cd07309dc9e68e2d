"""`tilescope serve-model`: what it prints, writes and refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import pva
from cli.main import tilescope
from pva.analysis import requests
from tests.cli.golden_calls import CONFIG


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "models" / "digits").mkdir(parents=True)
    (tmp_path / "models" / "digits" / "config.pbtxt").write_text(CONFIG)
    (tmp_path / "gaps.txt").write_text("100\n" * 40)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Any:
    base = ["serve-model", "replay", "models", "--arrivals", "gaps.txt", "--batch-time", "300us"]
    return CliRunner().invoke(tilescope, [*base, *arguments])


def test_spans_are_written_as_csv_and_as_a_trace_that_opens(folder: Path) -> None:
    assert run("--spans", "s.csv").exit_code == run("--spans", "s.json").exit_code == 0
    lines = (folder / "s.csv").read_text().splitlines()
    assert len(lines) == 41 and lines[0].startswith("request,arrival_ns,rows,how,batch,queue_ns")
    frame = requests(pva.openTrace(folder / "s.json"))
    assert frame["queue_ns"].tolist() == [int(line.split(",")[5]) for line in lines[1:]]
    again = run("--spans", "s.csv")
    assert again.exit_code == 2 and "already there" in again.output


def test_json_has_all_figures_and_as_many_requests_as_asked_for(folder: Path) -> None:
    found = json.loads(run("--json", "--limit", "3", "--what-if", "delay=0").stdout)
    assert (found["command"], found["model"], found["count"]) == (
        "serve-model replay",
        "digits",
        40,
    )
    assert len(found["requests"]) == 3 and len(found["variants"]) == 2
    assert found["variants"][0]["configured"] and not found["variants"][1]["configured"]
    assert found["device"]["batch_ns"] == 300_000
    assert len(json.loads(run("--json", "--limit", "0").stdout)["requests"]) == 40


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--model", "other"), "no model 'other'; there are digits"),
        (("--batch-time", "soon"), "write a time, as 400us"),
        (("--rows", "9"), "9 rows; at most max_batch_size, 8"),
        (("--spans", "s.txt"), "a name that ends in .json or .csv"),
        (("--arrivals", "poisson:fast"), "no rate"),
        (("--what-if", "instances=99999"), "99,999 instances; at most 10,000"),
    ],
)
def test_a_wrong_option_is_one_line(folder: Path, arguments: tuple[str, ...], words: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2 and result.stdout == ""
    assert words in result.stderr and result.stderr.count("\n") == 1


def test_devices_that_do_not_keep_up_and_refused_requests_are_named(folder: Path) -> None:
    config = folder / "models" / "digits" / "config.pbtxt"
    said = run("--batch-time", "3ms", "--what-if", "instances=40").stdout
    assert "as configured: devices do not keep up, the queue grows" in said
    policy = "dynamic_batching { default_queue_policy { max_queue_size: 2 }"
    config.write_text(CONFIG.replace("dynamic_batching {", policy))
    assert "requests turned away" in run("--batch-time", "3ms").stdout


def test_without_protobuf_the_line_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib.util

    known = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if "google" in name else known(name)
    )
    result = run()
    assert result.exit_code == 2 and "pip install 'tilescope[serving]'" in result.stderr
