"""The names of the SDK can be imported in a run that asks for them, and in no other."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.main import tilescope
from cli.programs.sdk import importable
from simulator import popart

PROGRAM = """
import libpvti, pva
import popart
from popart.optimizers import SGD
import simulator.popart
assert popart is simulator.popart and popart.SGD is SGD
builder = popart.Builder()
x = builder.addInputTensor(popart.TensorInfo("FLOAT", [4]))
y = builder.aiOnnx.relu([x])
device = popart.DeviceManager().createIpuModelDevice({"ipuVersion": "tiny"})
session = popart.InferenceSession(builder.getModelProto(), popart.DataFlow(1, [y]), device)
session.prepareDevice()
session.run(popart.PyStepIO({x: [1.0, -1.0, 2.0, 0.0]}, session.initAnchorArrays()))
"""


def test_a_program_imports_popart_by_its_name(tmp_path: Path) -> None:
    program, out = tmp_path / "train.py", tmp_path / "run"
    program.write_text(PROGRAM)
    plain = CliRunner().invoke(tilescope, ["simulate", str(program), "--out", str(out)])
    assert plain.exit_code != 0
    done = CliRunner().invoke(tilescope, ["simulate", "--sdk", str(program), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert (out / "inference" / "profile.pop").exists()
    assert sys.modules.get("popart") is not popart


def test_the_names_stand_for_other_modules_within_alone() -> None:
    before = sys.modules.get("popart")
    with importable():
        assert importlib.import_module("popart") is popart
    assert sys.modules.get("popart") is before


ENTRIES = ("import poptorch", "from simulator import poptorch", "import torch\nimport poptorch")


@pytest.mark.parametrize("entry", ENTRIES)
def test_without_the_extra_one_line_names_it(
    entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("simulator.poptorch")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    program = tmp_path / "train.py"
    program.write_text(f"import sys\n{entry}\n")
    arguments = ["simulate", "--sdk", str(program), "--out", str(tmp_path / "run")]
    done = CliRunner().invoke(tilescope, arguments)
    assert done.exit_code == 2 and len(done.output.splitlines()) == 1
    assert f"{program}:2" in done.output and "pip install 'tilescope[torch]'" in done.output


def test_a_program_may_go_on_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "simulator.poptorch", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with importable(), pytest.raises(ImportError, match="tilescope"):
        importlib.import_module("poptorch")


def test_names_of_the_sdk_without_their_option_are_told_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "popart", None)  # tests/popart is none
    program = tmp_path / "train.py"
    program.write_text("import popart\n")
    done = CliRunner().invoke(tilescope, ["simulate", str(program), "--out", str(tmp_path / "o")])
    assert done.exit_code == 2 and "give --sdk" in done.output
