"""What of a report directory may be replaced, and who may write into it."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pva.errors import OverwriteError, PvaError
from pva.formats import registry, report_directory
from pva.formats.marker import NAME, SIZE_LIMIT
from pva.report import openReport
from tests.builders import small_report

NAMES = ("profile.pop", "app.json")
HOLD = """
import sys, time
from pathlib import Path
from pva.formats import registry, report_directory
from pva.formats.database.pop import ReportWriter
from tests.builders import small_report

claim = report_directory.claim(Path(sys.argv[1]), ["profile.pop", "app.json"])
path = claim.directory / "profile.pop"
writer = ReportWriter(path, small_report(), claim.grow("profile.pop"))
print("holds", flush=True)
time.sleep(60)
"""


def written(directory: Path, name: str = "app.json", text: str = "ours") -> None:
    claim = report_directory.claim(directory, NAMES)
    with claim.writing(name) as part:
        part.write_text(text)
    claim.release()


def contents(directory: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest()
            for file in directory.rglob("*") if file.is_file()}  # fmt: skip


@contextmanager
def holder(directory: Path, program: str = HOLD) -> Iterator[subprocess.Popen[str]]:
    """Run a process that writes into a directory; it is killed at the end."""
    command = [sys.executable, "-W", "ignore", "-c", program, str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as it:
        assert it.stdout is not None and it.stdout.readline() == "holds\n"
        try:
            yield it
        finally:
            it.kill()


def refused(directory: Path, match: str, *, alone: bool = False) -> None:
    before = contents(directory)
    with pytest.raises(OverwriteError, match=match) as raised:
        report_directory.claim(directory, NAMES, alone=alone)
    assert "\n" not in str(raised.value) and contents(directory) == before
    assert not report_directory.is_claimed(directory)


def test_file_that_nobody_claimed_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "app.json").write_text("mine")
    refused(tmp_path, "app.json: not written by tilescope; move it away")


def test_directory_of_other_things_is_refused_where_a_report_stands_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    refused(tmp_path, f"holds something else: thesis.tex, and no {NAME}", alone=True)
    report_directory.claim(tmp_path, NAMES).release()  # beside it, as an engine does
    assert contents(tmp_path).keys() == {"thesis.tex"}


def test_file_that_was_written_is_replaced_and_others_stay(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "notes").write_text("mine")
    claim = report_directory.claim(tmp_path, NAMES, alone=True)
    assert contents(tmp_path).keys() == {"notes", NAME}
    claim.release()
    assert contents(tmp_path).keys() == {"notes"}


def test_file_that_was_edited_is_refused_and_kept(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "app.json").write_text("ours, edited")
    refused(tmp_path, "app.json: changed since it was written")


def test_link_in_the_place_of_a_file_is_refused(tmp_path: Path) -> None:
    written(tmp_path / "report")
    (tmp_path / "report" / "app.json").rename(tmp_path / "mine.json")
    (tmp_path / "report" / "app.json").symlink_to(tmp_path / "mine.json")
    refused(tmp_path / "report", "app.json: changed since")
    assert (tmp_path / "mine.json").read_text() == "ours"


@pytest.mark.parametrize("name", ["../mine", "/etc/passwd", "..", ".", "", "a/b", "a\0b"])
def test_marker_that_names_a_file_elsewhere_is_refused(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    folder.mkdir()
    (tmp_path / "mine").write_text("mine")
    known = {"sha256": hashlib.sha256(b"mine").hexdigest()}
    (folder / NAME).write_text(json.dumps({"format": 1, "files": {name: known}}))
    with pytest.raises(PvaError, match=f"{NAME}: not the marker of a report directory"):
        report_directory.claim(folder, NAMES)
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 10**5, '{"files": 3}', "1" * SIZE_LIMIT])
def test_marker_that_is_none_is_one_line(text: str, tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(text)
    with pytest.raises(PvaError, match="not the marker of a report directory") as raised:
        report_directory.claim(tmp_path, NAMES)
    assert "\n" not in str(raised.value)


def test_marker_that_is_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / NAME)
    with pytest.raises(PvaError, match="no plain file"):
        report_directory.claim(tmp_path, NAMES)


def test_growing_report_of_a_killed_writer_is_replaced(tmp_path: Path) -> None:
    with holder(tmp_path):
        pass
    assert openReport(tmp_path).check()["holds"].all()
    written(tmp_path)
    assert contents(tmp_path).keys() == {"app.json", NAME}


def test_other_report_in_the_place_of_a_killed_writers_is_kept(tmp_path: Path) -> None:
    with holder(tmp_path):
        pass
    (tmp_path / "profile.pop").unlink()
    registry.write(small_report(), tmp_path / "profile.pop")
    refused(tmp_path, "profile.pop: changed since it was written")


def test_second_writer_is_refused_by_name_until_the_first_dies(tmp_path: Path) -> None:
    with holder(tmp_path) as process:
        match = f"process {process.pid} on {os.uname().nodename} writes into it; give each program"
        refused(tmp_path, match)
        refused(tmp_path, match, alone=True)
    written(tmp_path)


def test_claims_of_one_process_share_a_directory(tmp_path: Path) -> None:
    first = report_directory.claim(tmp_path, NAMES, alone=True)
    with first.writing("app.json") as part:
        part.write_text("first")
    second = report_directory.claim(tmp_path, ["profile.pop"])
    assert (tmp_path / "app.json").read_text() == "first"
    first.release()
    first.release()
    assert report_directory.is_claimed(tmp_path)
    second.release()
    assert not report_directory.is_claimed(tmp_path)
    assert "writer" not in json.loads((tmp_path / NAME).read_text())


def test_forked_child_that_outlives_its_parent_holds_nothing(tmp_path: Path) -> None:
    forks = """import os
reader, writer = os.pipe()
if os.fork():
    os.read(reader, 1)  # the child runs
    print("holds", flush=True)
else:
    os.write(writer, b"x")
    os.close(1)
"""
    with holder(tmp_path, HOLD.replace('print("holds", flush=True)', forks)) as process:
        process.kill()
        process.wait()
        written(tmp_path)
        os.killpg(process.pid, signal.SIGKILL)


def test_reports_of_folders_below_are_replaced_together(tmp_path: Path) -> None:
    outer = report_directory.claim(tmp_path, NAMES, alone=True)
    for name in ("training", "inference"):
        written(tmp_path / name)
    outer.release()
    (tmp_path / "inference" / "notes").write_text("mine")
    report_directory.claim(tmp_path, NAMES, alone=True).release()
    assert contents(tmp_path).keys() == {"notes", NAME}
    assert not (tmp_path / "training").exists()


def test_folder_below_that_holds_something_else_refuses_the_whole(tmp_path: Path) -> None:
    outer = report_directory.claim(tmp_path, NAMES, alone=True)
    for folder in (tmp_path, tmp_path / "training"):
        written(folder)
    outer.release()
    (tmp_path / "training" / "app.json").write_text("mine")
    refused(tmp_path, "training/app.json: changed since it was written", alone=True)


def test_folder_that_nobody_wrote_is_no_part_of_the_report(tmp_path: Path) -> None:
    written(tmp_path)
    written(tmp_path / "own", text="a report of its own")
    report_directory.claim(tmp_path, NAMES, alone=True).release()
    assert (tmp_path / "own" / "app.json").read_text() == "a report of its own"
