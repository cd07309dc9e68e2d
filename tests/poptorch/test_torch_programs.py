"""Programs in the shape of public ones run unchanged by `tilescope simulate --sdk`.

After mnist_pipeline, anchor_tensor_example and mixed_precision of graphcore/tutorials, and
nlp/bert/pytorch of graphcore/examples; each checks its own values.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("torch", reason="needs torch: make test-torch")
pytest.importorskip("onnxscript", reason="needs onnxscript: make test-torch")

from cli.main import tilescope  # noqa: E402 - asked for behind torch

PROGRAMS = Path(__file__).parent / "programs"
LEFT = {
    "pipeline": ["inference", "training"],
    "anchors": ["training"],
    "halves": ["inference", "inference_2", "training"],
    "encoder": ["training"],
}


@pytest.mark.parametrize("name", LEFT)
def test_a_program_in_the_shape_of_a_public_one_runs_unchanged(name: str, tmp_path: Path) -> None:
    arguments = ["--target", "tiny", "--out", str(tmp_path / "run")]
    program = str(PROGRAMS / f"{name}.py")
    done = CliRunner().invoke(tilescope, ["simulate", "--sdk", *arguments, program])
    assert done.exit_code == 0, done.output
    found = sorted(file.parent.name for file in (tmp_path / "run").glob("*/profile.pop"))
    assert found == LEFT[name]
