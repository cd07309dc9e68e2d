"""The commands that run the simulator, from the program to the report that they leave."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from cli.demo import beside
from cli.main import tilescope
from pva import schema
from pva.analysis.execution.main_runs import main_run
from pva.report import openReport
from pva.trace import openTrace


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(tilescope, [str(argument) for argument in arguments])


of_demo = pytest.mark.xdist_group("demo")  # trained once, not in each process


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    out = tmp_path_factory.mktemp("demo") / "report"
    return out, run("demo", "--no-serve", "--out", out)


@of_demo
def test_demo_trains_well_and_prints_the_summary(demo: tuple[Path, Result]) -> None:
    out, result = demo
    assert result.exit_code == 0
    right = re.search(r"([\d.]+) % of the test images are right", result.stdout)
    assert right and float(right[1]) >= 90
    assert run("summary", out).stdout in result.stdout
    faster = re.search(r"split over both IPUs: ([\d.]+) % faster", result.stdout)
    slow, fast = (main_run(openReport(path)).items_per_second for path in (out, beside(out)))
    assert faster and float(faster[1]) == round(100 * (fast / slow - 1), 1)


@of_demo
def test_demo_shows_its_progress_in_lines(demo: tuple[Path, Result]) -> None:
    lines = demo[1].stderr.splitlines()
    assert lines[0] == "[0/8] build and compile"
    assert lines[-1].startswith("[8/8] epoch 7 of 7: loss ")


@of_demo
def test_demo_prints_what_the_tutorial_says(demo: tuple[Path, Result]) -> None:
    """Lines below `$ tilescope ...` are of its output, which the page may cut."""
    page = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text(encoding="utf-8")
    out = demo[0]
    names = {"demo": str(out), "demo-even": str(beside(out))}
    sessions = re.findall(r"```console\n\$ tilescope (.*?)\n(.*?)```", page, re.DOTALL)
    assert len(sessions) == 4
    for call, lines in sessions:
        printed = " ".join(run(*(names.get(w, w) for w in shlex.split(call))).stdout.split())
        assert [line for line in lines.splitlines() if " ".join(line.split()) not in printed] == []


@of_demo
def test_demo_leaves_a_report_that_adds_up_and_a_trace(demo: tuple[Path, Result]) -> None:
    out = demo[0]
    assert {"profile", "debug", "trace"} <= set(openReport(out).files)
    assert run("check", out).exit_code == 0
    labels = run("trace", "show", out, "--only", "labels", "--limit", "0").stdout
    assert "Engine::run" in labels and "train on a batch" in labels
    assert openTrace(out).is_finished
    assert run("check", beside(out)).exit_code == 0


@of_demo
def test_the_loader_is_the_cause_of_the_gaps_between_runs(demo: tuple[Path, Result]) -> None:
    trace = openTrace(demo[0])
    columns = trace.threads[0].columns

    def spans(label: str) -> tuple[np.ndarray, np.ndarray]:
        rows = np.flatnonzero(columns.label == trace.labels.index(label))
        return columns.begin_ns[rows], columns.end_ns[rows]

    begin, end = spans("train on a batch")
    loading, loaded = spans("loader: next batch")
    assert ((end[:-1] <= loading[1:]) & (loaded[1:] <= begin[1:])).all()
    assert (loaded[1:] - loading[1:]).sum() > 0.8 * (begin[1:] - end[:-1]).sum()


def test_the_demo_refuses_a_place_that_is_taken(tmp_path: Path) -> None:
    (tmp_path / "report-even").mkdir()
    (tmp_path / "report-even" / "mine.txt").write_text("precious")
    refused = run("demo", "--no-serve", "--out", tmp_path / "report")
    assert refused.exit_code == 2 and "report-even: holds something else" in refused.stderr
    assert [path.name for path in tmp_path.rglob("*")] == ["report-even", "mine.txt"]
    assert "has no name" in run("demo", "--no-serve", "--out", "/").stderr


def test_one_epoch_is_said_in_the_singular(tmp_path: Path) -> None:
    arguments = ("simulate", "mlp_digits", "--target", "tiny", "--epochs", "1")
    assert "train 1 epoch of 89 steps" in run(*arguments, "--out", tmp_path / "run").stderr


@pytest.mark.parametrize(("options", "counted"), [((), True), (("--no-code",), False)])
@pytest.mark.parametrize(
    "program", [("matmul_chain", "4x3", "3x2"), ("newton_pipeline", "--tiles", "2")]
)
def test_examples_count_code_unless_told_otherwise(
    program: tuple[str, ...], options: tuple[str, ...], counted: bool, tmp_path: Path
) -> None:
    result = run("simulate", *program, "--target", "tiny", *options, "--out", tmp_path / "out")
    assert result.exit_code == 0 and ("without code" in result.stderr) != counted
    code = schema.CATEGORIES.index("controlCode")
    held = openReport(tmp_path / "out").dataset.array("memory_by_category")[code]
    assert bool(held.any()) == counted


def test_matmul_chain_replaces_the_report_of_an_earlier_run(tmp_path: Path) -> None:
    out = tmp_path / "chain"
    for shapes in (("4x3", "3x2"), ("8x6", "6x4", "4x2")):
        result = run("simulate", "matmul_chain", *shapes, "--target", "tiny", "--out", out)
        assert result.exit_code == 0
    assert result.stdout.startswith("product of 8 x 2; relative error ")
    assert len(list(out.glob("*.pvti"))) == 1
    assert openReport(out).dataset.value("target", "num_tiles") == 4


PROGRAM = """
import sys
import beside
from simulator import poplar

device = poplar.IPUModel().createDevice()
graph = poplar.Graph(device.getTarget())
here, there = (graph.addVariable(poplar.FLOAT, [4], name) for name in ("here", "there"))
graph.setTileMapping(here, 0)
graph.setTileMapping(there, 1)
engine = poplar.Engine(graph, poplar.program.Copy(here, there))
engine.load(device)
for _ in range(4):
    engine.run()
print(__name__, *sys.argv[1:], beside.WORD, "cli" in vars(sys.modules["__main__"]))
sys.exit(3 if "--fail" in sys.argv else 0)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    folder = tmp_path / "prógram folder"
    folder.mkdir()
    (folder / "beside.py").write_text("WORD = 'found'\n")
    (folder / "mine.py").write_text(PROGRAM)
    return folder / "mine.py"


def test_a_python_file_is_run_with_its_arguments(program: Path, tmp_path: Path) -> None:
    out = tmp_path / "my out"
    result = run("simulate", program, "--epochs", "8", "--target", "tiny", "--out", out)
    assert result.stdout == "__main__ --epochs 8 found False\n"
    assert result.exit_code == 0 and f"report: {out}" in result.stderr
    assert "memory: fits, without code: tile " in result.stderr and "execution: " in result.stderr
    assert openReport(out).dataset.value("target", "num_tiles") == 4
    assert run("simulate", program, "--out", out, "--", "--fail", "--out").exit_code == 3


def test_target_ipus_and_options_reach_the_program(program: Path, tmp_path: Path) -> None:
    option = "autoReport.executionProfileProgramRunCount=3"
    given = ("--ipus", "2", "--option", option, "--out", tmp_path / "out")
    assert run("simulate", "--target", "bow", program, *given).exit_code == 0
    report = openReport(tmp_path / "out")
    assert report.dataset.value("target", "num_ipus") == 2
    assert report.dataset.value("target", "clock_frequency") == 1.85e9
    recorded = report.dataset.column("runs", "end_step") > report.dataset.column(
        "runs", "first_step"
    )
    assert recorded.sum() == 3
    assert "POPLAR_TARGET_OPTIONS" not in os.environ


def test_a_program_may_go_to_another_directory(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program.write_text(f"import os\nos.chdir('/')\n{PROGRAM}")
    result = run("simulate", program, "--target", "tiny", "--out", "here")
    assert result.exit_code == 0
    assert {"profile", "trace"} <= set(openReport(tmp_path / "here").files)
    assert Path.cwd() == tmp_path


def test_a_program_that_fixes_its_own_target_keeps_it(program: Path, tmp_path: Path) -> None:
    program.write_text(PROGRAM.replace("IPUModel()", "IPUModel('tiny')"))
    result = run("simulate", program, "--target", "mk1", "--out", tmp_path / "out")
    assert result.exit_code == 0
    assert f"{program}: fixes its own target, 1 x tiny, not 1 x mk1 as asked for" in result.stderr


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("print('nothing')", 2, "mine.py: made no Engine before it ended; nothing was simulated"),
        ("import sys\nsys.exit('no data')", 2, "no data\ntilescope: "),
        ("1 / 0", 2, "ZeroDivisionError: division by zero"),
        (
            "from simulator import poplar\npoplar.IPUModel('mk9')",
            2,
            "mine.py:2: PoplarError: IPUModel: no part 'mk9'",
        ),
        (PROGRAM + "raise ValueError('late')", 0, ""),
    ],
)
def test_a_program_without_an_engine_ends_with_two(
    program: Path, tmp_path: Path, text: str, code: int, message: str
) -> None:
    program.write_text(text)
    result = run("simulate", program, "--target", "tiny", "--out", tmp_path / "out")
    assert result.exit_code == code and message in result.stderr
    assert (tmp_path / "out").exists() == (code == 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--target", "mk9"), "--target: no part 'mk9'; known are mk1, mk2, bow, tiny"),
        (("--option", "autoReport.al=true"), "--option: no option 'autoReport.al'; did you mean"),
        (("--option", "autoReport.all"), "--option autoReport.all: no value; write KEY=VALUE"),
        (("--option", "autoReport.all=maybe"), "true or false is needed"),
    ],
)
def test_options_are_refused_before_the_program_runs(
    program: Path, options: tuple[str, ...], message: str
) -> None:
    result = run("simulate", program, *options)
    assert (result.exit_code, result.stdout) == (2, "") and message in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("[" * 10**5, "POPLAR_ENGINE_OPTIONS: nested too deeply; a JSON object of options"),
        ('{"a": ' + "9" * 5000 + "}", "POPLAR_ENGINE_OPTIONS: not JSON; a JSON object of options"),
        (
            '{"debug.graphReportDestination": "PIPE"}',
            "cannot write PIPE: No such device or address",
        ),
        ('{"debug.graphReportDestination": "a\\u0000"}', "cannot write a\\x00: embedded null byte"),
    ],
)
def test_variables_that_are_hostile_are_one_line(
    program: Path, tmp_path: Path, options: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "PIPE")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", options)
    result = run("simulate", program, "--target", "tiny", "--out", "out")
    assert result.exit_code == 2 and message in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    missing = run("simulate", tmp_path / "none.py")
    assert missing.exit_code == 2 and "none.py: no such file" in missing.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("8x6", "5x4"), "shape 5x4: has 5 rows after a matrix of 6 columns"),
        (("8x6", "6y4"), "shape '6y4'"),
        (("4x4", "4x4", "--target", "mk9"), "known are mk1, mk2, bow, tiny"),
    ],
)
def test_program_that_is_wrong_is_one_line(
    arguments: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    result = run("simulate", "matmul_chain", *arguments, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert message in result.stderr and result.stderr.count("\n") == 1


def test_info_of_a_program_that_never_ran_counts_in_words(tmp_path: Path) -> None:
    from simulator import poplar

    device = poplar.IPUModel("tiny").createDevice()
    graph = poplar.Graph(device.getTarget())
    large = graph.addVariable(poplar.FLOAT, [200_000], "large")
    graph.setTileMapping(large, 1)
    graph.createHostRead("large", large)
    options = {"autoReport.all": True, "autoReport.directory": str(tmp_path)}
    poplar.Engine(graph, poplar.program.Sequence(), options)
    text = run("info", tmp_path).stdout
    assert "IPU_MODEL tiny, ipu2: 1 IPU x 4 tiles" in text
    assert "does not fit, 1 tile out of memory, without code: tile 1" in text
    assert "execution   no run has ended\n" in text
