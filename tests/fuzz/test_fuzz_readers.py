"""A short run of the fuzzer that is guided by coverage; by hand it may run for hours."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

RUNS = 100
ROOT = Path(__file__).parents[2]
# libFuzzer counts as its own the most memory that the process which started it ever had: a shell
# stands between, so that other tests of this worker do not count.
BETWEEN = ("sh", "-c", '"$0" "$@"; exit $?')


@pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None,
    reason=f"atheris has no wheel for this Python ({sys.version.split()[0]}): not fuzzed",
)
@pytest.mark.parametrize(
    "target", ["fuzz_readers", "fuzz_executables", "fuzz_popef", "fuzz_serving"]
)
def test_inputs_guided_by_coverage_give_lines_of_errors(target: str, tmp_path: Path) -> None:
    options = [f"-runs={RUNS}", "-seed=1", "-timeout=60", "-rss_limit_mb=1024"]
    options.append(f"-artifact_prefix={tmp_path}/")
    done = subprocess.run(
        [*BETWEEN, sys.executable, "-m", f"tests.fuzz.{target}", *options],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    cases = re.search(r"Done (\d+) runs", done.stderr)
    assert cases
    assert int(cases[1]) >= RUNS
