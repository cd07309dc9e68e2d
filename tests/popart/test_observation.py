"""What a session shows of itself: log lines, DOT files, the tile map, the patterns applied."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from models import model, node, outcome, prepared, tiny

from simulator import popart
from simulator.popart import logging

LINE = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}\] \[(.*?)\] \[(.*?)\] (.*)")
NODES = [
    node("Dropout", "a", "b", name="drop"),
    node("Concat", "b", "c", axis=0, name="join"),
    node("Mul", "c w", "d", name="scale"),
]
SMALL = model(NODES, {"a": [2]}, ["d"], {"w": np.float32([3, 4])})


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("LOG_LEVEL", "LOG_DEST", "LOG_CONFIG", "DOT_CHECKS", "TENSOR_TILE_MAP"):
        monkeypatch.delenv(f"POPART_{name}", raising=False)
    logging._CHOSEN.clear()
    yield
    logging._CHOSEN.clear()


def test_nothing_is_logged_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    prepared(SMALL, ["d"])
    assert capsys.readouterr().err == ""


def test_lines_have_the_guides_form(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POPART_LOG_LEVEL", "INFO")
    monkeypatch.setenv("POPART_LOG_DEST", "stdout")
    prepared(SMALL, ["d"])
    found = [LINE.fullmatch(line) for line in capsys.readouterr().out.splitlines()]
    assert [m and m.groups()[:2] for m in found] == [
        ("popart:session", "info"),
        *[("popart:devicex", "info")] * 3,  # compiling, compiled, loaded
    ]


def test_programs_write_lines_at_the_level_of_a_module(capsys: pytest.CaptureFixture[str]) -> None:
    logger = popart.getLogger("opx")
    logger.setLevel("WARN")
    for level in ("trace", "debug", "info", "warn", "error", "critical"):
        getattr(logger, level)("hello")
    found = [LINE.fullmatch(line) for line in capsys.readouterr().err.splitlines()]
    assert [m and m.groups()[:2] for m in found] == [
        ("popart:opx", level) for level in ("warning", "error", "critical")
    ]


def test_the_file_of_levels_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "conf.py").write_text('{"devicex": "OFF", "pattern": "DEBUG"}')
    monkeypatch.setenv("POPART_LOG_LEVEL", "INFO")
    monkeypatch.setenv("POPART_LOG_CONFIG", str(tmp_path / "conf.py"))
    prepared(SMALL, ["d"])
    text = capsys.readouterr().err
    assert "[popart:devicex]" not in text and "[popart:session] [info]" in text
    assert "[popart:pattern] [debug] OpToIdentity applied to node 'drop'" in text


def test_a_program_sets_levels_of_all_modules_and_of_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    popart.getLogger().setLevel("DEBUG")
    popart.getLogger("session").setLevel("OFF")
    prepared(SMALL, ["d"])
    text = capsys.readouterr().err
    assert "[popart:devicex]" in text and "[popart:session]" not in text


def test_lines_go_to_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POPART_LOG_LEVEL", "INFO")
    monkeypatch.setenv("POPART_LOG_DEST", str(tmp_path / "log"))
    prepared(SMALL, ["d"])
    assert (
        len((tmp_path / "log").read_text().splitlines()) == 4
    )  # a model, compiling, compiled, loaded


@pytest.mark.parametrize(
    ("variable", "value"), [("LOG_LEVEL", "LOUD"), ("DOT_CHECKS", "FWD7"), ("LOG_CONFIG", "/none")]
)
def test_wrong_variables_are_named(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"POPART_{variable}", value)
    with pytest.raises(popart.popart_exception, match=f"POPART_{variable}"):
        prepared(SMALL, ["d"])


def test_stages_of_variable_and_options_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POPART_DOT_CHECKS", "FWD0:FINAL")
    options = popart.SessionOptions(dotChecks=["FWD1"], logDir=str(tmp_path))
    flow = popart.DataFlow(1, ["d"])
    popart.InferenceSession(SMALL, flow, tiny(), userOptions=options).prepareDevice()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["final.dot", "fwd0.dot", "fwd1.dot"]
    assert 'label="Dropout\\ndrop"' in (tmp_path / "fwd0.dot").read_text()
    final = (tmp_path / "final.dot").read_text()
    assert "Dropout" not in final and 't0 -> n0 [label="a"];' in final


def test_a_drawing_replaces_its_earlier_one_alone(tmp_path: Path) -> None:
    options = popart.SessionOptions(dotChecks=["FWD0"], logDir=str(tmp_path))
    given = popart.DataFlow(1, ["d"]), tiny()
    for _ in range(2):
        popart.InferenceSession(SMALL, *given, userOptions=options)
    text = (tmp_path / "fwd0.dot").read_text().replace("drop", "mine")
    (tmp_path / "fwd0.dot").write_text(text)
    with pytest.raises(popart.popart_exception, match=r"fwd0.dot: there already, and not as it"):
        popart.InferenceSession(SMALL, *given, userOptions=options)
    assert (tmp_path / "fwd0.dot").read_text() == text


def test_the_backward_pass_is_drawn_too(tmp_path: Path) -> None:
    options = popart.SessionOptions(dotChecks=["BWD0"], logDir=str(tmp_path))
    given = {"losses": [popart.L1Loss("d", "loss")], "optimizer": popart.SGD(0.1)}
    flow = popart.DataFlow(1, [])
    popart.TrainingSession(SMALL, flow, deviceInfo=tiny(), userOptions=options, **given)
    text = (tmp_path / "bwd0.dot").read_text()
    assert 'label="MulGrad\\nscale/Grad"' in text and 'label="L1\\nloss"' in text


def test_the_tile_map_has_each_element_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POPART_TENSOR_TILE_MAP", str(tmp_path / "ttm.js"))
    prepared(SMALL, ["d"])
    found = json.loads((tmp_path / "ttm.js").read_text())
    for name in ("a", "w", "d"):
        assert [place for _, begin, end in found[name] for place in range(begin, end)] == [0, 1]
        assert all(0 <= tile < 4 for tile, _, _ in found[name])


def test_the_graph_is_dumped_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POPART_IR_DUMP", str(tmp_path / "ir.json"))
    prepared(SMALL, ["d"])
    found = json.loads((tmp_path / "ir.json").read_text())
    (only,) = found["nodes"]
    assert (only["name"], only["operator"], only["inputs"]) == (
        "scale",
        "ai.onnx.Mul-7",
        ["a", "w"],
    )
    assert found["weights"] == {"w": "FLOAT [2]"}


def operators(patterns: popart.Patterns) -> list[str]:
    """Name the operators that are left after patterns."""
    flow = popart.DataFlow(1, ["d"])
    session = popart.InferenceSession(SMALL, flow, tiny(), patterns=patterns)
    return [n.operator for n in session._ir.nodes]


def test_patterns_are_switched_off_by_name() -> None:
    assert operators(popart.Patterns()) == ["Mul"]
    assert operators(popart.Patterns({"OpToIdentity": False})) == ["Dropout", "Mul"]
    assert operators(popart.Patterns(popart.PatternsLevel.NoPatterns)) == [
        "Dropout",
        "Concat",
        "Mul",
    ]
    some = popart.Patterns(["PreUniRepl"]).enablePattern("OpToIdentity", True)
    assert operators(some) == ["Identity", "Identity", "Mul"]
    with pytest.raises(popart.popart_exception, match="no pattern 'Magic'; known are PreUniRepl"):
        popart.Patterns(["Magic"])


def test_anchors_that_patterns_would_remove_stay() -> None:
    found = outcome(SMALL, {"a": np.float32([1, 2])}, "b", "c", "d")
    assert [values.tolist() for values in found] == [[1, 2], [1, 2], [3, 8]]
