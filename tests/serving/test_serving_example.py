"""examples/serving: the repository is made, served, asked and replayed, as its README says."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import pva
from cli.main import tilescope
from pva.analysis import requests
from simulator.serving.live import Options, listening

EXAMPLE = Path(__file__).parents[2] / "examples" / "serving"


def script(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"serving_{name}", EXAMPLE / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the repository."""
    folder = tmp_path_factory.mktemp("example")
    script("make_repository").write_repository(folder / "models")
    return folder


def test_the_digits_are_served_traced_and_replayed(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    options = Options(Path("models"), http=0, grpc=-1, metrics=-1, trace_file=Path("served.json"))
    with listening(options) as found:
        right = script("client").main(found.ports["http"], requests=60, clients=4)
    found.settings.write_trace()
    assert right > 0.85
    assert re.search(r"a batch takes \d+\.\d us on the device", capsys.readouterr().out)
    assert len(requests(pva.openTrace("served.json"), model="digits")) == 60
    text = (EXAMPLE / "README.md").read_text().replace("\\\n", " ")
    calls = [line.split()[1:] for line in text.splitlines() if "serve-model replay" in line]
    assert len(calls) == 2
    for call in calls:
        result = CliRunner().invoke(tilescope, [*call, "--requests", "2000"])
        assert result.exit_code == 0, result.output
        assert "lowest 99th percentile" in result.output
