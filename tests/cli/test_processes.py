"""The commands as processes of their own: entry points, pipes, a start without heavy imports."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tests.builders import write_report

ROOT = Path(__file__).parents[2]
ENTRY_POINTS = {
    "tilescope": "from cli.main import main; main()",
    "printProfileSummary": "from cli.summary import print_profile_summary as run; run()",
}


def command(name: str, *arguments: str | Path) -> list[str]:
    return [sys.executable, "-c", ENTRY_POINTS[name], *map(str, arguments)]


def run(name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command(name, *arguments), capture_output=True, text=True, env=environment, timeout=300
    )


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(tmp_path_factory.mktemp("reports") / "run")


def test_both_entry_points_print_the_same_summary(report: Path) -> None:
    first, second = run("tilescope", "summary", report), run("printProfileSummary", report)
    assert first.stdout.startswith("Target:\n")
    assert (first.stdout, first.stderr, first.returncode) == (second.stdout, "", 0)


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_missing_report_is_one_line_that_begins_with_the_command(name: str, tmp_path: Path) -> None:
    arguments = ["summary"] if name == "tilescope" else []
    done = run(name, *arguments, tmp_path / "nothing")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{name}: {tmp_path / 'nothing'}: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [("info", "-"), ("sql", "{report}", "-")])
def test_standard_input_that_is_closed_is_empty(report: Path, arguments: tuple[str, ...]) -> None:
    words = [argument.format(report=report) for argument in arguments]
    script = 'exec "$@" <&-'
    done = subprocess.run(
        ["sh", "-c", script, "sh", *command("tilescope", *words)], capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)}, timeout=300,
    )  # fmt: skip
    assert done.returncode == 2 and done.stderr.count("\n") == 1


ENDLESS = "with recursive t(x) as (select 1 union all select 1 - x from t) select count(*) from t"
BY_SQLITE = "import pva.query as query; query.select = query.by_sqlite; "
# Where the tests run in the background of a shell, their children would not hear Ctrl-C.
HEARS_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "


def test_a_query_ends_with_ctrl_c(report: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    program, option, code, *rest = command("tilescope", "sql", report, ENDLESS)
    code = HEARS_CTRL_C + BY_SQLITE + "print('begun', flush=True); " + code
    with subprocess.Popen(
        [program, option, code, *rest],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        try:
            told = process.communicate(timeout=60)[1]
        finally:
            process.kill()
    assert (process.returncode, "Traceback" in told) == (130, False)


def test_what_an_encoding_cannot_write_is_spelled_out(
    report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    done = run("tilescope", "sql", report, "select 'π' as letter", "--format", "csv")
    assert (done.returncode, done.stdout.split()) == (0, ["letter", "\\u03c0"])


def test_a_pipe_is_written_to_and_a_link_stays_one(report: Path, tmp_path: Path) -> None:
    (tmp_path / "target.json").write_text("before")
    (tmp_path / "link.json").symlink_to(tmp_path / "target.json")
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE) as reader:
        for name in ("link.json", "pipe"):
            done = run("tilescope", "convert", report, "-o", tmp_path / name, "--to", "json",
                       "--force")  # fmt: skip
            assert done.returncode == 0, done.stderr
        assert reader.communicate(timeout=60)[0] == (tmp_path / "target.json").read_bytes()
    assert (tmp_path / "pipe").is_fifo() and (tmp_path / "link.json").is_symlink()


def test_reader_that_goes_away_ends_the_command_quietly(report: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command("tilescope", "show", "steps", report, "--format", "csv"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    ) as process:  # fmt: skip
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141


def test_help_does_not_load_what_only_commands_need() -> None:
    script = "import cli.main, sys; print('\\n'.join(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.split()
    assert not {"numpy", "pandas", "dash", "simulator", "dashboard", "pvti"} & set(loaded)


def test_serve_prints_its_url_answers_and_ends_at_an_interrupt(report: Path) -> None:
    pytest.importorskip("dash")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    program, option, code, *rest = command("tilescope", "serve", report, "--port", "0")
    with subprocess.Popen(
        [program, option, HEARS_CTRL_C + code, *rest],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    ) as process:  # fmt: skip
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
        assert line.startswith("dashboard: http://127.0.0.1:")
        with urllib.request.urlopen(line.split()[1], timeout=120) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGINT)
        assert "Traceback" not in process.stderr.read()
    assert process.returncode in (0, 130)
