"""The tutorials of the user guide: the values and lines that the guide shows, typed in by hand."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from pva.analysis.execution.totals import execution_overview
from pva.check import check
from pva.report import Report, openReport
from simulator import poplar

TUTORIALS = Path(__file__).parents[2] / "examples" / "tutorials"
NAMES = sorted(path.stem for path in TUTORIALS.glob("tut*.py"))
ARGUMENTS = {
    "tut4_profiling": ["--out", "report"],
    "tut5_ml": ["1", "40"],
    "tut6_matrix_vector": ["40", "50"],
    "tut7_matrix_vector_opt": ["40", "50", "--target", "tiny"],
}
TUT7 = "tut7_matrix_vector_opt"
TUT7_HEAD = """\
Multiplying matrix of size 10000x1000 by vector of size 1000
Creating environment (compiling vertex programs)
Constructing compute graph and control program
Best split chosen:
colsAxisSplit=5, total cost=4751 (compute cost=4410, exchange cost=200,
                                reduce exchange cost=45,
                                reduce compute cost=96)
Worst cost seen: 64373
Running graph program to multiply matrix by vector
Multiplication result OK
"""


def run_process(
    name: str, *arguments: str, folder: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a tutorial as a reader does: from another folder, with nothing said of the checkout."""
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [sys.executable, str(TUTORIALS / f"{name}.py"), *arguments]
    return subprocess.run(
        command, env=clean | environment, cwd=folder, capture_output=True, text=True, check=False
    )


def load(name: str, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> ModuleType:
    """Import a tutorial, with arguments for its command line."""
    monkeypatch.syspath_prepend(TUTORIALS)
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    return importlib.import_module(name)


@pytest.mark.parametrize("name", NAMES)
def test_each_tutorial_runs_as_a_program_from_anywhere(name: str, tmp_path: Path) -> None:
    done = run_process(name, *ARGUMENTS.get(name, []), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(("Running program\n", "Using the IPU Model\n", "Multiplying"))


def test_the_guides_seven_tutorials_are_there() -> None:
    assert [name[:4] for name in NAMES] == [f"tut{number}" for number in range(1, 8)]


def test_tutorial_1_variables_copies_and_streams(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    load("tut1_variables", monkeypatch).main()
    printed = capsys.readouterr()
    assert printed.err.splitlines() == [
        "v1-debug: {0,0,0,0}",
        "v1-debug: {1,1.5,2,2.5}",
        "v2-debug: {1,1.5,2,2.5}",
        "v4-0: {0,1,2,3,4,5,6,7,8,9}",
        "v4-1: {10,11,12,13,14,15,16,17,18,19}",
    ]
    assert printed.out.splitlines() == [
        "Running program",
        "Program complete",
        "",
        "h3 data:",
        "  0 0 0 0",
        "  0 1 1.5 2",
        "  0 0 0 0",
        "  0 0 0 0",
    ]


def test_tutorial_2_library_additions(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    load("tut2_operations", monkeypatch).main()
    assert capsys.readouterr().err == (
        "v3: {\n {5,4.5},\n {4,3.5}\n}\n"
        "v4: {\n {9,7.5},\n {6,4.5}\n}\n"
        "v5: {\n {5,3.5},\n {5,3.5}\n}\n"
    )


def test_tutorial_3_a_codelet_on_each_of_four_tiles(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    load("tut3_vertices", monkeypatch).main()
    printed = capsys.readouterr()
    assert printed.err == "v2: {7,6,4.5,2.5}\n"
    assert printed.out == "Running program\nProgram complete\n"


def test_tutorial_4_prints_the_profile_of_two_products(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    load("tut4_profiling", monkeypatch, "--out", str(tmp_path / "report")).main()
    printed = capsys.readouterr().out
    parts = ("Target:", "Graph:", "Memory Usage:", "Execution:", "Steps", "OnTileExecute")
    places = [printed.index(part) for part in parts]
    assert places == sorted(places)
    report = openReport(tmp_path / "report")
    names = [step.program.name for step in report.execution.steps]
    assert any(name.startswith("m4/") for name in names)
    assert any(name.startswith("m5/") for name in names)
    assert check(report.dataset) == []


def test_tutorial_5_learns_the_digits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    load("tut5_ml", monkeypatch, "2").main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Using the IPU Model"
    shares = [20, 40, 60, 80, 100]
    heads = [f"Epoch {epoch} ({share}%), accuracy " for epoch in (1, 2) for share in shares]
    assert [line[: len(head)] for line, head in zip(lines[1:], heads, strict=True)] == heads
    accuracies = [int(line.split()[-1].rstrip("%")) for line in lines[1:]]
    assert accuracies[0] < 50
    assert min(accuracies[-3:]) >= 85


def test_tutorial_5_does_what_numpy_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tutorial = load("tut5_ml", monkeypatch, "1")
    tutorial.main()
    images, labels = tutorial.readDigits()
    random = np.random.default_rng(1)
    weights, biases = random.standard_normal((10, 64)), random.standard_normal(10)
    right = []
    for image, label in zip(images[:1500].astype(float), labels[:1500], strict=True):
        y = weights @ image + biases
        powers = np.exp(y - y.max())
        right.append(y.argmax() == label)
        delta = powers / powers.sum() - np.eye(10)[label]
        biases -= 0.05 * delta
        weights -= 0.05 * np.outer(delta, image)
    expected = [f"accuracy {int(batch.mean() * 100)}%" for batch in np.reshape(right, (5, 300))]
    printed = [line.split(", ")[1] for line in capsys.readouterr().out.splitlines()[1:]]
    assert printed == expected


@pytest.mark.parametrize(("rows", "columns"), [(40, 50), (1, 1), (1, 7), (1600, 3)])
def test_tutorial_6_multiplies_a_matrix_by_a_vector(
    rows: int,
    columns: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tutorial = load("tut6_matrix_vector", monkeypatch, str(rows), str(columns))
    assert tutorial.main() == 0
    assert capsys.readouterr().out.splitlines() == [
        f"Multiplying matrix of size {rows}x{columns} by vector of size {columns}",
        "Creating environment (compiling vertex programs)",
        "Constructing compute graph and control program",
        "Running graph program to multiply matrix by vector",
        "Multiplication result OK",
    ]


@pytest.mark.parametrize("name", ["tut6_matrix_vector", TUT7])
def test_a_wrong_result_is_told(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    matrix = np.outer(np.arange(40), np.arange(50)).astype(np.float32)
    # The sum of the squares of 0 to 49 is 40,425.
    output = np.arange(40) * np.float32(40_425)
    tutorial = load(name, monkeypatch)
    assert tutorial.checkResult(matrix, np.arange(50), output) == 0
    output[7] += 10
    assert tutorial.checkResult(matrix, np.arange(50), output) == 1
    found = capsys.readouterr().out.splitlines()
    assert found == ["Multiplication result OK", "ERROR: output 7: expected=282975, actual=282985"]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Report]:
    """Run tutorial 7 at the guide's size; give what it printed and its report."""
    folder = tmp_path_factory.mktemp("tut7")
    done = run_process(TUT7, "10000", "1000", "--target", "mk1", "--out", "report", folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout, openReport(folder / "report")


def test_tutorial_7_prints_the_guides_lines(large: tuple[str, Report]) -> None:
    printed, _ = large
    assert printed.startswith(TUT7_HEAD)
    assert printed.splitlines()[-1].startswith("Program cycles: ")


def test_tutorial_7_takes_the_guides_5071_cycles_within_3_percent(
    large: tuple[str, Report],
) -> None:
    printed, _ = large
    assert int(printed.split()[-1]) == pytest.approx(5071, rel=0.03)


def test_tutorial_7_has_the_published_compute_cycles_with_its_data_streamed(
    large: tuple[str, Report],
) -> None:
    # 50,000 x 105 + 10,000 x 8 + 63 x 72: the vector comes in 63 packets of 64 bytes.
    printed, report = large
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    assert "Total compute cycles (excluding idle threads): 5,334,536" in lines
    assert "DotProductVertex (50000 instances): 5,250,000" in lines
    assert "ReduceVertex (10000 instances): 80,000" in lines
    assert "poplar_rt::ShortMemcpy (63 instances): 4,536" in lines
    assert check(report.dataset) == []


def test_tutorial_7_accounts_for_every_cycle_of_every_tile(large: tuple[str, Report]) -> None:
    # As the published profile does: compute, exchange, host exchange and sync add up to the whole.
    assert 8_190_756 * 1216 == 5_513_152 + 963_855 + 9_952_701_003 + 781_286
    overview = execution_overview(large[1])
    spent = [overview.tile_cycles[n] for n in ("compute", "do_exchange", "stream_copy", "sync")]
    assert overview.cycles * 1216 == sum(spent)


def test_tutorial_7_sees_the_guides_worst_cost_at_its_last_split(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = poplar.Graph(poplar.IPUModel("mk1").createDevice().getTarget())
    tutorial = load(TUT7, monkeypatch)
    assert tutorial.estimateCycles(graph, 10_000, 1_000, 999, False) == 64_373


@pytest.mark.parametrize(
    ("size", "target"),
    [
        ((1, 1), "mk1"),
        ((1, 7), "mk2"),
        ((7, 1), "tiny"),
        ((40, 50), "bow"),
        ((40, 50), "tiny"),
        ((3000, 17), "mk2"),
        ((17, 3000), "mk1"),
    ],
)
def test_tutorial_7_holds_for_every_size_and_target(
    size: tuple[int, int],
    target: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    arguments = [*map(str, size), "--target", target, "--out", str(tmp_path / "report")]
    assert load(TUT7, monkeypatch, *arguments).main() == 0
    assert "Multiplication result OK\n" in capsys.readouterr().out
    assert check(openReport(tmp_path / "report").dataset) == []


def cost_of(rows: int, columns: int, split: int, tiles: int) -> int:
    """Estimate a split once more, in real numbers that are rounded where whole ones are needed."""
    vertices = np.ceil(rows * split / tiles)
    segment = np.ceil(columns / split)
    multiply = np.ceil(vertices / 6) * 6 * (5 + np.ceil(segment / 2))
    bring = np.ceil(vertices / rows) * segment
    sums = np.ceil(rows / tiles)
    return int(multiply + bring + np.ceil(sums / 6) * 6 * (5 + np.ceil(split / 2)) + sums * split)


@pytest.mark.parametrize("size", [(40, 50), (3000, 17), (17, 300), (1, 2)])
@pytest.mark.parametrize("target", ["mk1", "tiny"])
def test_tutorial_7_takes_the_cheapest_split(
    size: tuple[int, int],
    target: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    graph = poplar.Graph(poplar.IPUModel(target).createDevice().getTarget())
    costs = [cost_of(*size, s, graph.getTarget().getNumTiles()) for s in range(1, size[1])]
    best = load(TUT7, monkeypatch).calcOptimalColAxisSplit(graph, *size)
    assert best == 1 + int(np.argmin(costs))
    printed = capsys.readouterr().out
    assert f"colsAxisSplit={best}, total cost={min(costs)} (" in printed
    assert f"Worst cost seen: {max(costs)}\n" in printed


def test_tutorial_7_that_does_not_fit_says_so_in_one_line(tmp_path: Path) -> None:
    options = '{"debug.allowOutOfMemory": "false"}'
    done = run_process(
        TUT7, "1200", "1000", "--target", "tiny", folder=tmp_path, POPLAR_ENGINE_OPTIONS=options
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "out of memory" in done.stderr.lower()
    assert done.stderr.count("\n") == 1


def test_tutorial_7_runs_on_a_model_that_it_does_not_fit_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ["1200", "1000", "--target", "tiny", "--out", str(tmp_path / "report")]
    assert load(TUT7, monkeypatch, *arguments).main() == 0
    assert "Multiplication result OK" in capsys.readouterr().out
    memory = openReport(tmp_path / "report").dataset.column("memory_by_tile", "overflowed")
    assert memory.sum() > 0


@pytest.mark.parametrize("size", [("0", "5"), ("5", "0"), ("-1", "3")])
def test_a_matrix_without_elements_is_refused(size: tuple[str, str], tmp_path: Path) -> None:
    done = run_process(TUT7, "--", *size, folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr.endswith("error: a matrix has at least one row and one column\n")
