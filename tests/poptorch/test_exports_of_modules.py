"""Exports of modules run without PyTorch, and speak of them: fixtures of make_exports."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from dashboard.address import parse
from dashboard.pages.operations.page import branches
from pva.analysis.operations.costs import operation_costs
from pva.analysis.operations.details import operation_programs
from pva.analysis.selection import SelectionError
from simulator import popart
from simulator.popart.representation.origins import Origin, origin_of, shown_file, users_line

FOLDER = Path(__file__).parent / "exports"
NAMES = sorted(file.stem for file in FOLDER.glob("*.npz"))
REPORT = {"debug.allowOutOfMemory": True, "debug.instrument": True}


def model(name: str) -> onnx.ModelProto:
    return onnx.load_from_string(gzip.decompress((FOLDER / f"{name}.onnx.gz").read_bytes()))


def device() -> Any:
    return popart.DeviceManager().createIpuModelDevice({"ipuVersion": "tiny"})


@cache
def ran(name: str) -> tuple[Any, Any]:
    """Run an export on its input; return its session and output."""
    proto = model(name)
    out, given = proto.graph.output[0].name, proto.graph.input[0].name
    options = popart.SessionOptions(engineOptions=dict(REPORT), enableOutlining=False)
    session = popart.InferenceSession(
        proto, popart.DataFlow(1, [out]), device(), userOptions=options
    )
    session.prepareDevice()
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO({given: np.load(FOLDER / f"{name}.npz")["x"]}, anchors))
    return session, anchors[out]


@pytest.mark.parametrize("name", NAMES)
def test_exports_give_the_values_of_torch(name: str) -> None:
    wanted = np.load(FOLDER / f"{name}.npz")["y"]
    assert np.abs(ran(name)[1] - wanted).max() < 1e-5 * np.abs(wanted).max()


def test_the_fixtures_are_all_of_the_modules_and_small() -> None:
    assert {"bert", "convolutions", "encoder", "gpt2", "gru", "lstm", "mlp", "resnet18", "unet",
            "vit"} == set(NAMES)  # fmt: skip
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < 300_000


def test_every_compute_set_of_a_node_is_of_a_module_with_class_and_line() -> None:
    report = ran("convolutions")[0].getReport()
    contexts = report.frames.debug_contexts().set_index("id")
    modules = contexts[contexts["layer"] == "poptorch"]
    assert set(modules["file"]) == {"modules.py"} and (modules["line"] > 0).all()
    assert '"class":"torch.nn.modules.batchnorm.BatchNorm2d"' in "".join(modules["json"])
    for row in contexts[contexts["layer"] == "popart"].itertuples():
        assert row.parent in modules.index


def test_costs_by_module_add_up_to_the_whole_and_to_those_within() -> None:
    report = ran("convolutions")[0].getReport()
    tree, flat = (operation_costs(report, by=by) for by in ("module", ""))
    rows = tree.set_index("operation")
    top = tree[tree["depth"] == 0]
    for figure in ("cycles", "steps", "flops", "variables"):
        assert top[figure].sum() == flat[figure].sum(), figure
    within = rows[rows.index.str.startswith("body.")]
    assert rows.loc["body", "cycles"] == within["cycles"].sum() + rows.loc["body", "own_cycles"]
    assert rows.loc["body.1", "kind"] == "BatchNorm2d"
    assert rows.loc["body.1", "source"].startswith("modules.py:")


def test_modules_stand_behind_those_that_they_are_in() -> None:
    names = operation_costs(ran("vit")[0].getReport(), by="module")["operation"].tolist()
    for place, name in enumerate(names):
        above = name.rpartition(".")[0]
        assert not above or above in names[:place]


def test_programs_of_a_module_are_also_those_within() -> None:
    report = ran("convolutions")[0].getReport()
    of = {name: operation_programs(report, operation=name, layer="module").tolist()
          for name in ("body", "body.0", "Convolutions")}  # fmt: skip
    assert set(of["body.0"]) < set(of["body"]) < set(of["Convolutions"])


def test_another_way_to_sum_up_is_refused() -> None:
    with pytest.raises(SelectionError, match="by layer: not there"):
        operation_costs(ran("mlp")[0].getReport(), by="layer")


def test_a_batch_norm_in_training_is_told_apart() -> None:
    norms = [node for node in model("training").graph.node if node.op_type == "BatchNormalization"]
    attributes = {a.name: a.i for a in norms[0].attribute}
    assert attributes["training_mode"] == 1 and len(norms[0].output) == 3
    assert origin_of(norms[0]) == Origin(
        "inner.body.1", "torch.nn.modules.batchnorm.BatchNorm2d", *line_of(norms[0])
    )


def line_of(node: onnx.NodeProto) -> tuple[str, int]:
    text = next(e.value for e in node.metadata_props if e.key.endswith("stack_trace"))
    return users_line(text)


def test_the_line_is_the_innermost_that_is_not_of_torch(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    installed = "/usr/lib/site-packages"
    frames = (
        f'File "{tmp_path}/nets/model.py", line 7, in forward\n  x\n'
        f'File "{installed}/torch/nn/modules/linear.py", line 130, in forward\n'
    )
    assert users_line(frames) == ("nets/model.py", 7)
    assert shown_file(f"{installed}/transformers/vit.py") == "vit.py"
    assert shown_file("/elsewhere/model.py") == "model.py"


@pytest.mark.parametrize("text", ["", "[", "{1: 2}", "['']", "[" * 500])
def test_metadata_that_is_no_list_of_names_is_left_alone(text: str) -> None:
    node = onnx.NodeProto(op_type="Relu")
    node.metadata_props.add(key="pkg.torch.onnx.name_scopes", value=text)
    assert origin_of(node) is None


def test_a_branch_of_the_tree_is_opened_and_closed_by_itself() -> None:
    costs = operation_costs(ran("convolutions")[0].getReport(), by="module")

    def shown(search: str) -> list[str]:
        return branches(costs, parse("/operations", search))["operation"].tolist()

    whole, within = costs["operation"].tolist(), [f"body.{n}" for n in range(7)]
    assert shown("?levels=all") == whole
    closed = [name for name in whole if name not in within]
    assert shown("?levels=2") == shown("?levels=all&folded=all:body") == closed
    assert shown("?levels=2&folded=2:body") == whole
    assert shown("?levels=all&folded=2:body") == whole  # of another level
