"""The profile summary, with all of its sections, is written without pandas."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.builders import write_report

PROGRAM = """
import sys
from pva import openReport
from pva.summary.profile_summary import profile_texts
sections = ("var_storage", "optimizations", "exchange_instruction_breakdown",
            "per_ipu_memory_usage", "execution_steps")
for _ in profile_texts(openReport(sys.argv[1]), **{f"show_{name}": True for name in sections}):
    pass
print("pandas" in sys.modules)
"""


def test_a_summary_with_all_sections_does_not_import_pandas(tmp_path: Path) -> None:
    report = write_report(tmp_path / "run")
    command = [sys.executable, "-c", PROGRAM, str(report)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
