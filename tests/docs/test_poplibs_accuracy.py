"""The comparison with PopLibs' published figures reads, builds and reckons as it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import poplibs_accuracy, poplibs_programs, poplibs_table
from benchmarks.poplibs_accuracy import PAGE, PARTS, Comparison, markers
from benchmarks.poplibs_table import Benchmark, Figures
from simulator import poplar

SMALL: dict[str, dict[str, str]] = {
    "conv": {
        "field": "{6,5}",
        "kernel-size": "3",
        "padding": "{1,0}",
        "stride": "2",
        "input-channels": "4",
        "output-channels": "8",
        "batch-size": "2",
    },
    "fc": {"input-size": "16", "output-size": "8", "batch-size": "4"},
    "gemm": {"m": "8", "k": "16", "n": "32"},
    "reduction": {"shape": "4,16,8", "dims": "1", "type": "half", "operation": "ADD"},
    "lstm": {"sequence-size": "2", "input-size": "16", "output-size": "16", "phase": "all"},
    "gru": {"sequence-size": "2", "input-size": "16", "output-size": "16", "phase": "all"},
    "embedding": {"shape": "{32,8}", "num-indices": "6"},
    "cholesky": {"a-rank": "8", "block-size": "4", "data-type": "float"},
    "triangular_solve": {"a-rank": "8", "block-size": "4", "left-side": "false"},
}


def row(name: str, kind: str, ours: tuple[int, int, int] | None) -> Comparison:
    """Make a row whose published figures are 1,000, 2,000 and 400."""
    benchmark = Benchmark(name, kind, {}, Figures(1000, 2000, 400))
    return Comparison(
        benchmark, None if ours is None else Figures(*ours), 1.5, "" if ours else "no"
    )


def test_table_has_the_published_rows() -> None:
    rows = list(poplibs_table.read_table())
    kinds = [row.kind for row in rows]
    counts = {kind: kinds.count(kind) for kind in set(kinds)}
    assert counts == {"conv": 96, "fc": 50, "gemm": 27, "pooling": 10, "reduction": 9}
    found = next(row for row in rows if row.name == "bert_reduce_0")
    assert found.parameters["shape"] == "16,4,16,32,8"
    assert found.published == Figures(1466, 600_904, 864)


@pytest.mark.parametrize(
    ("text", "dimensions", "field"), [("{35,17}", 0, (35, 17)), ("3", 2, (3, 3)), ("{7}", 1, (7,))]
)
def test_fields_are_lists_or_one_number_for_all(
    text: str, dimensions: int, field: tuple[int, ...]
) -> None:
    assert poplibs_programs.field_of(text, dimensions) == field


@pytest.mark.parametrize("kind", SMALL)
def test_small_program_of_a_kind_is_built_and_measured(kind: str) -> None:
    found = poplibs_accuracy.measure(
        Benchmark("small", kind, SMALL[kind], Figures(1, 1, 1)), "tiny"
    )
    assert found.cycles > 0
    assert 4 * found.max_tile_bytes_including_gaps >= found.total_memory_bytes > 0


def test_memory_is_what_always_lives_and_the_most_of_the_rest_by_tile() -> None:
    # 256 halves that are never written always live; on the one tile no more than these is needed
    # beside the 8 outputs in either stage, and what vertices take.
    parameters = {"shape": "32,8", "dims": "0", "type": "half", "operation": "MAX"}
    small = Benchmark("small", "reduction", parameters | {"tiles-per-ipu": "1"}, Figures(1, 1, 1))
    found = poplibs_accuracy.measure(small, "tiny")
    assert 512 + 16 <= found.total_memory_bytes <= 512 + 16 + 150


def test_errors_are_shares_of_the_published_figures() -> None:
    assert row("a", "fc", (1100, 1500, 400)).errors() == pytest.approx((0.1, -0.25, 0))
    assert row("b", "fc", None).errors() == ()


def test_summary_has_median_and_90th_percentile_of_each_kind() -> None:
    # Errors of cycles 10, 20 and 60 %: the median is 20, nine tenths of the way are 52.
    done = [row("a", "fc", (1100, 2000, 400)), row("b", "fc", (800, 2000, 400))]
    done += [row("c", "fc", (1600, 2000, 400)), row("d", "gemm", None)]
    lines = list(poplibs_accuracy.summary(done))
    assert lines[2:] == ["| fc | 3 | 20.0 %, 52.0 % | 0.0 %, 0.0 % | 0.0 %, 0.0 % |"]


def test_worst_rows_come_first_and_rows_without_figures_say_why() -> None:
    done = [row("a", "fc", (1100, 2000, 400)), row("b", "fc", (800, 3000, 400))]
    text = poplibs_accuracy.document([*done, row("c", "gemm", None)])
    assert text.index("| b | fc | -20 % | +50 % | +0 % |") < text.index("| a | fc | +10 %")
    assert text.endswith("* c: no")


def test_results_keep_the_last_of_each_row(tmp_path: Path) -> None:
    first, second, *_ = poplibs_table.read_table()
    file, figures = tmp_path / "rows", Figures(5, 6, 7)
    last = [Comparison(first, figures, 2.0), Comparison(second, None, 1.0, "too large")]
    for done in (last[1], Comparison(first, None, 1.0, "no"), last[0]):
        poplibs_accuracy.keep(done, file)
    assert poplibs_accuracy.kept(file) == last


@pytest.mark.parametrize("part", PARTS.values())
def test_page_is_written_between_its_markers(part: str, tmp_path: Path) -> None:
    page, (begin, end) = tmp_path / "page.md", markers(part)
    page.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
    poplibs_accuracy.write_page("new", part, page)
    assert page.read_text() == f"before\n{begin}\nnew\n{end}\nafter\n"
    assert all(PAGE.read_text().count(marker) == 1 for marker in (begin, end))


def test_row_that_cannot_be_built_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **named: Any) -> None:
        raise poplar.PoplarError("too large")

    monkeypatch.setitem(poplibs_programs.BUILDERS, "gemm", refuse)
    with pytest.raises(poplar.PoplarError, match="too large"):
        poplibs_accuracy.measure(Benchmark("small", "gemm", {}, Figures(1, 1, 1)))


def test_layers_run_backward_only_with_phase_all() -> None:
    for kind in ("lstm", "gru"):
        forward, both = (
            poplibs_accuracy.measure(
                Benchmark("small", kind, SMALL[kind] | {"phase": phase}, Figures(1, 1, 1)), "tiny"
            )
            for phase in ("fwd", "all")
        )
        assert both.cycles > 2 * forward.cycles
        assert both.total_memory_bytes > forward.total_memory_bytes


def test_layers_table_has_the_published_rows() -> None:
    table = poplibs_table.TABLE.with_name("poplibs_layers_mk1.csv")
    rows = {row.name: row for row in poplibs_table.read_table(table)}
    kinds = [row.kind for row in rows.values()]
    assert {kind: kinds.count(kind) for kind in kinds} == {"embedding": 3, "lstm": 8, "gru": 8}
    assert rows["gru_8_25_1024_1024_float"].published == Figures(527_292, 34_381_572, 133_976)


def test_solvers_table_has_the_published_rows() -> None:
    table = poplibs_table.TABLE.with_name("poplibs_solvers_mk1.csv")
    rows = {row.name: row for row in poplibs_table.read_table(table)}
    kinds = [row.kind for row in rows.values()]
    assert {kind: kinds.count(kind) for kind in kinds} == {"cholesky": 24, "triangular_solve": 18}
    name = "triangular_solve_1_64_1_64_half_left"
    assert rows[name].published == Figures(142_797, 1_047_316, 32_920)


@pytest.mark.parametrize(
    ("lower", "inverse"),
    # One worker of six inverts a block of 4: 6 n^3 + 264 n^2 + 78 n - 120, and 51, 213, + 12
    [("true", 384 + 4224 + 312 - 120), ("false", 384 + 816 + 852 + 12)],
)
def test_an_inverse_takes_what_one_worker_took(lower: str, inverse: int) -> None:
    given = SMALL["cholesky"] | {"lower": lower}
    device = poplar.IPUModel("tiny").createDevice()
    graph, _ = poplibs_programs.build(
        Benchmark("small", "cholesky", given, Figures(1, 1, 1)), device
    )
    groups = [g for g in graph.vertex_groups() if "Inverse" in g.codelet.name]
    workers = graph.target.workers
    assert [group.cycles.tolist() for group in groups] == [[workers * inverse]]
