"""What a finding advises, tried: the measured saving beside what the finding calls "at most"."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pandas as pd
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper

import pva
from cli.main import tilescope
from cli.simulate import simulate as simulate_group
from dashboard.address import Address
from dashboard.pages import insights
from dashboard.store import Store
from pva.many.points import figures
from simulator.explore.levers import Space, read_levers
from tests.analysis.test_insights import LITTLE_ALWAYS, capacity
from tests.builders import small_report, write_report
from tests.dashboard.layouts import parts, words
from tests.many.explored import write_explored

pytest.importorskip("pyarrow")
TRAINED, IN_TURN, PIPELINE = ("--train",), ("--ipus=2",), ("--ipus=2", "--repeat=4")
SPACES = {TRAINED: ("--precision=half", "--recompute=all"), IN_TURN: ("--repeat=8",),
          PIPELINE: ("--repeat=16", "--io-tiles=2")}  # fmt: skip


def write_model(path: Path, batch: int = 64, width: int = 64, layers: int = 4) -> Path:
    """Write layers of relu(x @ w)."""
    nodes, weights, value = [], [], "x"
    for layer in range(layers):
        weight = np.full((width, width), 0.1, np.float32)
        weights.append(numpy_helper.from_array(weight, f"w{layer}"))
        after = "y" if layer == layers - 1 else f"a{layer}"
        nodes.append(helper.make_node("MatMul", [value, f"w{layer}"], [f"h{layer}"], f"M{layer}"))
        nodes.append(helper.make_node("Relu", [f"h{layer}"], [after], f"R{layer}"))
        value = after
    shapes = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [batch, width]) for n in "xy"]
    graph = helper.make_graph(nodes, "layers", shapes[:1], shapes[1:], weights)
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return path


def simulate(space: Path, key: str, *arguments: str) -> None:
    """Simulate a point, and keep its row and report as `tilescope explore` does."""
    out = space / "reports" / key
    found = CliRunner().invoke(tilescope, ["simulate", *arguments, "--out", str(out)])
    assert found.exit_code == 0, found.output
    row = {"key": key, "arguments": arguments, **figures(pva.openReport(out))}
    (space / "points").mkdir(exist_ok=True)
    (space / "points" / f"{key}.json").write_text(json.dumps(row))


@pytest.fixture(scope="module")
def spaces(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, ...], Path]:
    """Run a model in three ways, and each again with every lever that a finding may advise."""
    folder = tmp_path_factory.mktemp("tried")
    model = str(write_model(folder / "m.onnx"))
    found = {}
    for number, (base, levers) in enumerate(SPACES.items()):
        space = found[base] = write_explored(folder / str(number), reports=0)
        simulate(space, "base", model, "--target=tiny", "--no-values", *base)
        for lever in levers:
            words = [word for word in base if word.partition("=")[0] != lever.partition("=")[0]]
            simulate(space, lever.strip("-"), model, "--target=tiny", "--no-values", *words, lever)
    return found


def advised(space: Path) -> pd.DataFrame:
    """Return the findings of a space's base by rule."""
    return pva.openReport(space / "reports" / "base").insights.set_index("rule")


@pytest.mark.parametrize(("base", "rule", "trial"), [
    (TRAINED, "full_precision_at_peak", "precision=half"),
    (TRAINED, "idle_at_peak", "recompute=all"),
    (IN_TURN, "ipus_in_turn", "repeat=8"),
    (PIPELINE, "pipeline_rarely_full", "repeat=16"),
    (PIPELINE, "bound_by_host", "io-tiles=2"),
])  # fmt: skip
def test_a_measured_saving_is_never_more_than_at_most(spaces, base, rule, trial) -> None:
    finding = advised(spaces[base]).loc[rule]
    tried = [pva.openReport(spaces[base] / "reports" / key) for key in ("base", trial)]
    if finding["unit"] == "bytes":
        before, after = (r.dataset.column("liveness_steps", "bytes").max() for r in tried)
        always = [r.dataset.array("always_live_bytes").sum() for r in tried]
        saved = before + always[0] - after - always[1]
    else:
        before, after = (float(r.dataset.column("runs", "cycles").sum()) for r in tried)
        batches = [1 if base == IN_TURN else 4, int(trial[7:]) if "repeat" in trial else 4]
        saved = before - after * batches[0] / batches[1]
    assert finding["trial"] == trial
    assert finding["measured_saving"] == pytest.approx(float(saved))
    assert finding["measured_saving"] <= finding["saving"]


def test_try_it_is_the_command_that_explores_the_lever(spaces) -> None:
    space = spaces[PIPELINE]
    command = shlex.split(advised(space).loc["pipeline_rarely_full", "try_it"])
    assert command[:2] == ["tilescope", "explore"] and command[2].endswith("m.onnx")
    assert command[3:] == ["--target=tiny", "--no-values", "--ipus=2", "--vary", "repeat=4,8,16",
                           "--out", str(space)]  # fmt: skip
    # there is no training, so nothing can be recomputed
    assert advised(space).loc["idle_at_peak", "try_it"] == ""


def test_a_report_of_no_exploration_has_the_command_and_nothing_measured(tmp_path: Path) -> None:
    command = ["simulate", "a.onnx", "--out", "run", "--train"]
    report = pva.openReport(write_simulated(tmp_path, command))
    (finding,) = report.insights.query("rule == 'full_precision_at_peak'").to_dict("records")
    assert finding["try_it"] == (
        "tilescope explore a.onnx --train --vary precision=float,half"
        f" --out {tmp_path / 'explore-a'}"
    )
    assert np.isnan(finding["measured_saving"]) and finding["trial"] == ""


def write_simulated(folder: Path, command: list[str], **parts: Any) -> Path:
    """Write a report whose app.json has the words of a command."""
    path = write_report(folder / "report", small_report(**LITTLE_ALWAYS, **parts))
    facts = {"application": "tilescope", "command": command}
    (path / "app.json").write_text(json.dumps(facts))
    return path


def test_the_page_shows_both_savings_and_leads_to_both_points(spaces) -> None:
    store = Store([spaces[IN_TURN]])
    key = store.of_point(store.keys[0], "base")
    shown = insights.findings(store, Address("/insights", key), "light")
    (finding,) = advised(spaces[IN_TURN]).loc[["ipus_in_turn"]].to_dict("records")
    text = " ".join(words(shown).split())
    assert f"Try it: {finding['try_it']}" in text
    assert f"Measured: {finding['measured_saving']:,.0f} cycles saved, of" in text
    links = [part.href for part in parts(shown) if getattr(part, "href", "").startswith("/explore")]
    assert links and links[0].endswith("point=base,repeat%3D8")


def run(*words: str) -> None:
    """Run a command of ours; raises AssertionError where it does not end with 0."""
    result = CliRunner().invoke(tilescope, words)
    assert result.exit_code == 0, result.output


def test_each_command_runs_as_it_stands_where_the_report_was_made(tmp_path, monkeypatch) -> None:
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path)
    write_model(Path("models/m.onnx"), batch=16, width=16, layers=2)
    run("simulate", "models/m.onnx", "--target=tiny", "--train", "--no-values", "--out", "runs/1")
    before = pva.openReport("runs/1").insights.set_index("rule").query("try_it != ''")
    assert set(before.index) == {"full_precision_at_peak", "idle_at_peak"}
    assert before["measured_saving"].isna().all()
    for command in before["try_it"]:
        assert command.endswith(" --out runs/explore-m")
        run(*shlex.split(command)[1:])
    after = pva.openReport("runs/1").insights.set_index("rule").loc[before.index]
    assert (after["measured_saving"] <= after["saving"]).all()
    assert after["trial"].all()


def test_a_model_that_changed_since_is_not_measured(spaces, tmp_path: Path) -> None:
    command = ["simulate", "m.onnx", "--target=tiny", "--no-values", *TRAINED]
    report = write_simulated(tmp_path, command)  # the figures of another one
    shutil.copytree(spaces[TRAINED], tmp_path / "explore-m")
    assert pva.openReport(report).insights["measured_saving"].isna().all()


def test_every_command_and_its_points_parse(spaces) -> None:
    for space in spaces.values():
        for command in filter(None, advised(space)["try_it"]):
            words = shlex.split(command)
            context = tilescope.commands[words[1]].make_context(words[1], words[2:])
            levers = read_levers(context.params["vary"])
            for point in Space(words[2], context.params["shared"], levers).points():
                name, program, rest = simulate_group.resolve_command(context, [*point.arguments])
                assert program.make_context(name, rest).params["no_values"]


def test_a_program_that_does_not_fit_leads_to_the_command_that_makes_it_fit(tmp_path) -> None:
    command = ["simulate", "p.py", "--target=my.toml", "--size", "4", "--out=r", "--ipus", "2"]
    report = pva.openReport(write_simulated(tmp_path, command, **capacity(1000)))
    words = report.insights.set_index("rule").loc["does_it_fit", "try_it"]
    assert words == "tilescope fit p.py --target=my.toml --size 4 --ipus 2..4"
