"""The sample of the Poplar user guide, from a pair of profiles that holds its figures.

`tests/golden/guide_sample.txt` is the text of the guide from the line `Target:` on, as it stands.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest

from pva import printProfileSummary
from pva.check import check
from pva.report import Report
from tests.golden import guide_sample

GUIDE = (Path(__file__).parents[1] / "golden" / "guide_sample.txt").read_text(encoding="utf-8")
OPTIONS = {"showVarStorage": "true", "showExecutionSteps": "true"}
# The step that stands for those that the guide leaves out.
LAST_STEP = """\
          OnTileExecute: Layer1/Fwd/Conv_1/Convolve
            Live Bytes (excluding always-live): 580,312
            Live Vars (excluding always-live):
              Layer1/Fwd/Conv_1/Convolve/partials       484,872
              Layer1/Fwd/biases                             120
              Layer1/Fwd/weights                         94,080
              Layer3/Fwd/biases                              40
              Layer3/Fwd/weights                          1,200
"""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return guide_sample.write(tmp_path_factory.mktemp("guide sample"))


def repaired(text: str) -> str:
    """Put back the column that the extraction took from the histogram, and what was left out."""
    text, rows = re.subn(r"^      (?=1\d - )", "       ", text, flags=re.MULTILINE)
    assert rows == 10
    text = text.replace("\n...\n", f"\n{LAST_STEP}")
    return text.removesuffix("....\n")


def test_the_summary_is_the_sample_of_the_guide(pair: tuple[Path, Path]) -> None:
    text = io.StringIO()
    printProfileSummary(text, *pair, OPTIONS)
    assert text.getvalue().splitlines() == repaired(GUIDE).splitlines()
    assert text.getvalue() == repaired(GUIDE)


def test_a_directory_values_and_two_files_give_the_same(pair: tuple[Path, Path]) -> None:
    texts = []
    for profiles in (pair, (pair[0].parent,), tuple(map(_value, pair))):
        texts.append(io.StringIO())
        printProfileSummary(texts[-1], *profiles, options=OPTIONS)
    assert len({text.getvalue() for text in texts}) == 1


def test_the_most_that_is_live_stands_there_where_the_steps_are_cut(
    pair: tuple[Path, Path],
) -> None:
    graph, execution = map(_value, pair)
    liveness: Any = graph["memory"]["liveness"]["notAlwaysLive"]  # type: ignore[index]
    for steps in ([], liveness["steps"][:2]):
        text = io.StringIO()
        liveness["steps"] = steps
        printProfileSummary(text, graph, execution, {"showVarStorage": True})
        assert "Maximum live bytes (including always-live): 6,556,737\n" in text.getvalue()


def _value(file: Path) -> dict[str, object]:
    import json

    return json.loads(file.read_bytes())  # type: ignore[no-any-return]


def test_the_pair_keeps_the_laws_of_memory_and_liveness(pair: tuple[Path, Path]) -> None:
    # Of the execution the guide shows only the first steps.
    broken = check(Report.of_profiles(*pair).dataset.select("graph"))
    assert [str(violation) for violation in broken] == []
