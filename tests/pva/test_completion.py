"""A session of IPython completes the attributes of what a report and a trace hold."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

SAMPLE = Path(__file__).parents[2] / "sample_reports" / "mlp_digits_tiny"
ASKED = {
    "steps[0].": {"program", "ipus", "cyclesByTile"},
    "report.execution.runs[0].steps[2].ipus[0].": {"cycles", "activeCycles", "tileBalance"},
    "report.compilation.tiles[0].memory.category.": {"controlCode", "variable"},
    "report.compilation.programs[0].children[0].": {"name", "type", "controlCodeByTile"},
    "step.program.": {"name", "accept"},
    "trace.processes[0].threads[0].events[0].": {"label", "children"},
}
SESSION = f"""
import json
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
shell.run_cell('''
import pva
report, trace = pva.openReport({str(SAMPLE)!r}), pva.openTrace({str(SAMPLE)!r})
steps = report.execution.steps
step = steps[3]
''')
found = {{}}
for jedi in (False, True):
    shell.Completer.use_jedi = jedi
    for text in {list(ASKED)!r}:
        with provisionalcompleter():
            texts = [c.text for c in shell.Completer.completions(text, len(text))]
        found[f"{{jedi}} {{text}}"] = [text.rpartition(".")[2] for text in texts]
print(json.dumps(found))
"""


@cache
def completed(home: Path) -> dict[str, list[str]]:
    """Ask a new process: pva tells IPython of its classes where that runs before it."""
    run = subprocess.run(
        [sys.executable, "-c", SESSION],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2],
        env={"PATH": "", "HOME": str(home), "IPYTHONDIR": str(home)},
    )  # fmt: skip
    found: dict[str, list[str]] = json.loads(run.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("IPython")
    return tmp_path_factory.mktemp("home")


@pytest.mark.parametrize("jedi", [False, True])
@pytest.mark.parametrize("text", ASKED)
def test_attributes_complete_behind_an_index_too(text: str, jedi: bool, home: Path) -> None:
    assert ASKED[text] <= set(completed(home)[f"{jedi} {text}"])
