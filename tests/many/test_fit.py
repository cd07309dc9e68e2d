"""`tilescope fit`: what is tried in which order, and that each way was simulated and fits."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper

import pva
from cli.fit import reason
from cli.main import tilescope
from pva.analysis.memory.liveness import live_at_peak
from pva.many.points import figures
from pva.report import Report
from simulator.explore.fit import fit, levers_of
from simulator.explore.levers import Space
from simulator.explore.work import Task, run_point
from tests.builders import small_report

pytest.importorskip("pyarrow")
SPACE = Space("matmul_chain", (), {})


def answered(fits, levers):
    """Fit a program whose rows are what `fits` says of the levers: (lacks, samples a second)."""
    rows, asked = {}, []

    def run(points) -> None:
        for point in points:
            over, rate = fits(point.levers)
            asked.append(point.levers)
            rows[point.key] = {"key": point.key, "levers": point.levers, "fits": over <= 0,
                               "over": max(over, 0), "samples_per_second": rate}  # fmt: skip

    return fit(SPACE, {"ipus": "1"}, levers, run, rows), asked


def test_what_fits_as_it_is_gives_nothing_up() -> None:
    found, asked = answered(lambda levers: (0, 5.0), {"batch": ("4", "2")})
    assert [way["levers"] for way in found.ways] == [{"ipus": "1"}]
    assert asked == [{"ipus": "1"}]


def test_of_each_lever_the_mildest_value_that_fits_is_a_way_and_the_fastest_is_first() -> None:
    def fits(levers):
        if "batch" in levers:
            return int(levers["batch"]) - 4, float(levers["batch"])
        return (0, 9.0) if levers.get("precision") else (7, 1.0)

    levers = {"batch": ("8", "4", "2"), "precision": ("half",), "partials": ("half",)}
    found, _ = answered(fits, levers)
    assert [way["levers"] for way in found.ways] == [
        {"ipus": "1", "precision": "half"},
        {"ipus": "1", "batch": "4"},
    ]
    assert found.first == found.ways[1]["key"]  # batch stands before precision


def test_levers_are_combined_where_one_is_not_enough() -> None:
    def fits(levers):
        return 10 - 6 * ("precision" in levers) - 5 * ("batch" in levers), 1.0

    found, asked = answered(fits, {"partials": ("half",), "batch": ("2",), "precision": ("half",)})
    assert [way["levers"] for way in found.ways] == [
        {"ipus": "1", "batch": "2", "precision": "half"}
    ]
    assert max(map(len, asked)) == 3


def test_where_nothing_fits_the_nearest_miss_is_told() -> None:
    found, asked = answered(
        lambda levers: (50 - len(levers), 1.0), {"a": ("1",), "b": ("1",), "c": ("1",)}
    )
    assert not found.ways
    assert found.nearest["over"] == 46  # with all three
    assert len(asked) == 1 + 3 + 3 + 1


def test_levers_come_in_the_order_of_what_they_cost(tmp_path: Path) -> None:
    model = write_model(tmp_path / "m.onnx")
    found = levers_of(str(model), ("--train", "--optimizer", "adam"), range(1, 4), {})
    assert list(found) == ["memory-proportion", "partials", "recompute", "batch", "precision",
                           "optimizer", "ipus"]  # fmt: skip
    assert found["batch"] == ("32", "16", "8")
    assert found["optimizer"] == ("momentum", "sgd")
    assert found["ipus"] == ("2", "3")


def write_model(path: Path, batch: int = 64, width: int = 64) -> Path:
    """Write two layers of x @ w whose batch decides what they need."""
    weights = [numpy_helper.from_array(np.ones((width, width), np.float32), w) for w in ("v", "w")]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [batch, width]) for n in "xz"]
    nodes = [helper.make_node("MatMul", ["x", "v"], ["y"], "First"),
             helper.make_node("MatMul", ["y", "w"], ["z"], "Second")]  # fmt: skip
    graph = helper.make_graph(nodes, "two", ends[:1], ends[1:], weights)
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return path


def test_a_model_that_does_not_fit_is_made_to_and_each_way_is_simulated(tmp_path: Path) -> None:
    model, machine = write_model(tmp_path / "m.onnx"), tmp_path / "mine.toml"
    machine.write_text('like = "tiny"\nbytes_per_tile = 50_000\ninterleaved_base = 24_576\n')
    call = ["fit", str(model), "--target", str(machine), "--out", str(tmp_path / "f"), "--json",
            "--memory-proportion", "0.6", "--partials", "float"]  # fmt: skip
    result = CliRunner().invoke(tilescope, call)
    found = json.loads(result.stdout)
    assert result.exit_code == 0
    assert 1 <= len(found["ways"]) <= 5
    assert [way["way"] for way in found["ways"]] == ["precision=half", "batch=32"]
    for way in found["ways"]:
        report = pva.openReport(way["report"])
        fullest = max(tile.memory.total.includingGaps for tile in report.compilation.tiles)
        assert way["fits"] is True
        assert fullest == way["fullest_tile"] <= 50_000
    rates = [way["samples_per_second"] for way in found["ways"]]
    assert rates == sorted(rates, reverse=True)


def test_what_cannot_fit_ends_with_1_and_says_by_how_much(tmp_path: Path) -> None:
    model, machine = write_model(tmp_path / "m.onnx", 1), tmp_path / "mine.toml"
    machine.write_text('like = "tiny"\nbytes_per_tile = 16_384\ntiles_per_ipu = 1\n')
    call = ["fit", str(model), "--target", str(machine), "--memory-proportion", "0.5",
            "--partials", "float", "--out", str(tmp_path / "f")]  # fmt: skip
    result = CliRunner().invoke(tilescope, call)
    assert result.exit_code == 1
    assert "nothing fits: nearest is" in result.stdout
    assert re.search(r"\non the tile:  [\d,]+ bytes of [^\n]+ gaps", result.stdout)
    assert "not tried:    more IPUs than 1; add --ipus 1..4" in result.stdout
    assert "tile 0 lacks" in result.stdout


def test_what_fills_the_fullest_tile_adds_up_to_its_bytes() -> None:
    data = small_report()
    row = figures(Report.of(data))
    parts = ("code", "exchange_buffers", "always_live", "not_always_live", "gaps")
    assert sum(row[f"tile_{part}"] for part in parts) == row["fullest_tile"]
    live = live_at_peak(Report.of(data), tile=row["tile"]).groupby("category")["bytes"].sum()
    codes = ("controlCode", "internalExchangeCode", "hostExchangeCode", "globalExchangeCode",
             "vertexCode", "sharedCodeStorage")  # fmt: skip
    assert row["tile_code"] == live.reindex(codes).sum() > 0


def test_a_product_without_a_plan_is_a_point_that_does_not_fit(tmp_path: Path) -> None:
    model = write_model(tmp_path / "m.onnx", batch=4096, width=1024)
    words = (str(model), "--target=tiny", "--no-values")
    row = run_point(Task("k", words, str(tmp_path / "r"), 300, 0))
    assert (row["fits"], row["error"], row["step_name"]) == (False, "", "First/Conv_1")
    assert row["over"] == row["fullest_tile"] - 638_976 > 0  # what a tile of tiny has


def near(**parts: int) -> dict[str, object]:
    """Return a miss on a tile of 100 bytes."""
    names = ("always_live", "not_always_live", "code", "exchange_buffers", "gaps")
    return {"tile": 0, "bytes_per_tile": 100} | {f"tile_{n}": parts.get(n, 0) for n in names}


@pytest.mark.parametrize(("code", "words"), [
    (71, "always-live data and code alone take 1 byte more than a tile has"),
    (70, "most of it is data that is not always live: 90 bytes, -10 against as it is"),
])  # fmt: skip
def test_why_nothing_helps(code: int, words: str) -> None:
    first = near(always_live=30, code=code, not_always_live=100)
    miss = near(always_live=30, code=code, not_always_live=90)
    assert reason(miss, first).startswith(words)


@pytest.mark.parametrize(("error", "points"), [
    ("node 'r' cannot be reshaped", 1),
    ("took longer than 5 s, and was ended", 2),
    ("killed by SIGKILL, as the system does when memory runs out", 2),
])  # fmt: skip
def test_a_fault_of_the_program_itself_ends_the_search(error: str, points: int) -> None:
    rows: dict[str, dict[str, object]] = {}

    def run(tried) -> None:
        rows.update({point.key: {"key": point.key, "error": error} for point in tried})

    answer = fit(SPACE, {"ipus": "1"}, {"batch": ("2",)}, run, rows)
    assert (answer.ways, answer.nearest, len(answer.tried)) == ([], None, points)
