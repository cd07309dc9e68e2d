"""Writers whose n-th write, sync, rename or allocation fails, for each n, as SQLite is tested."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or not shutil.which("cc"),
    reason="a C compiler makes the faults, and Linux loads them",
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build what makes writes fail."""
    out = tmp_path_factory.mktemp("faults") / "failing_io.so"
    source = ROOT / "tests" / "failing_io.c"
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", out, "-ldl"], check=True)
    return out


def failures(library: Path, folder: Path, writer: str, fault: str) -> tuple[int, list[str]]:
    """Let each place of a writer fail; give how many there were, and what was printed."""
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "tests.failing_writers", writer, fault, folder],
        cwd=ROOT, env=os.environ | {"LD_PRELOAD": str(library), "FAILING_FOLDER": str(folder)},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return int(done.stdout), done.stderr.splitlines()


@pytest.mark.parametrize("fault", ["a full disk", "one write", "a rename"])
@pytest.mark.parametrize("name", ["out.pop", "out.json"])
def test_a_report_stays_whole_whatever_write_of_the_next_fails(
    tmp_path: Path, library: Path, name: str, fault: str
) -> None:
    places, printed = failures(library, tmp_path / "reports", name, fault)
    assert (places > 0, printed) == (True, [])


@pytest.mark.parametrize("fault", ["a full disk", "one write"])
@pytest.mark.parametrize("mode", ["file", "ring"])
def test_a_trace_can_be_read_whatever_write_fails_and_one_line_says_so(
    tmp_path: Path, library: Path, mode: str, fault: str
) -> None:
    places, printed = failures(library, tmp_path / "traces", mode, fault)
    assert places > 50
    assert len(printed) == places
    assert all(line.startswith("pvti: tracing stopped: ") for line in printed)


def test_no_trace_waits_for_the_disk(tmp_path: Path, library: Path) -> None:
    # `synchronous` is off, as docs/trace-format.md says: there is no sync that could fail.
    assert failures(library, tmp_path / "traces", "file", "a sync") == (0, [])


@pytest.mark.parametrize("writer", ["out.pop", "out.json", "file"])
def test_no_writer_breaks_where_an_allocation_fails(
    tmp_path: Path, library: Path, writer: str
) -> None:
    pytest.importorskip("_testcapi")
    assert failures(library, tmp_path / "folder", writer, "an allocation")[0] > 1000
