"""Each rule on a report in which it must fire, with savings by hand, and on one where it must not.

The small report: 10 tiles of 2,048 bytes, 3,382 bytes always live, at most 200 beside them (at step
6: x 80, product 80, message 40); 1,024 cycles, of which 642 compute, 218 exchange, 140 sync and 24
host exchange.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pva import schema
from pva.analysis import CATALOGUE
from pva.analysis.insight_rules import RULES, insights, unchecked_rules
from pva.analysis.insight_rules import _row as insight_row
from pva.analysis.insight_rules.finding import ALL_KINDS, ALL_TILES, GAPS, VARIABLES, Finding
from pva.analysis.insight_rules.fitting import with_what_lacks
from pva.units import Writing, write_as
from tests.analysis.samples import every_report, opened, small
from tests.builders import COMPUTE_CYCLES, TILES, small_report

DATA = small_report()


def table(table: str, /, **columns: Any) -> dict[str, Any]:
    """Return a table of the small report with columns replaced."""
    return {table: dict(DATA.table(table)) | columns}


def capacity(size: int) -> dict[str, Any]:
    return table("target", bytes_per_tile=[size])


def needed(values: Any) -> dict[str, Any]:
    return table("memory_by_tile", total_including_gaps=values)


def lasting(cycles: int, *types: str) -> dict[str, Any]:
    """Set the cycles by which every step of the types makes its run longer."""
    here = np.isin(DATA.texts("steps", "type"), types)
    begin, end = (DATA.column("steps", name) for name in ("cycles_from", "cycles_to"))
    return table("steps", cycles_to=np.where(here, begin + cycles, end))


def spread(**pieces: int) -> dict[str, Any]:
    """Return every piece of a variable so many bytes."""
    names = DATA.column("variables", "name")[DATA.column("variable_pieces", "variable")]
    sizes = DATA.column("variable_pieces", "bytes")
    for name, size in pieces.items():
        sizes = np.where(names == name, size, sizes)
    return table("variable_pieces", bytes=sizes)


# Only w (80 bytes) and the constant (4) are always live: the peak is 284 bytes.
LITTLE_ALWAYS = {"always_live_bytes": np.full(TILES, 8) + 4 * (np.arange(TILES) == 0)}


def kept_over_the_peak() -> dict[str, Any]:
    """Make add (step 9) read x in place of multiply (step 6): nothing uses it in steps 6 to 8."""
    programs = DATA.column("access", "program").copy()
    moved = (programs == 6) & (DATA.column("access", "variable") == 0)
    programs[moved] = 12
    return LITTLE_ALWAYS | table("access", program=programs)


def vertices(count: int) -> dict[str, Any]:
    """Set the number of vertices of multiply on its 10 tiles, of 440 bytes of state in all."""
    counts = DATA.column("compute_set_vertices", "count").copy()
    counts[0] = count
    data = DATA.array("memory_by_compute_set_vertex_data").copy()
    data[0] = 40
    return table("compute_set_vertices", count=counts) | {"memory_by_compute_set_vertex_data": data}


def convolution(flops: int) -> dict[str, Any]:
    """Make multiply run on the matrix units."""
    names = ["poplin::ConvPartial1x1Out<float>", *DATA.column("vertex_types", "name")[1:]]
    return table("vertex_types", name=names) | table("compute_sets", flops=[flops, 8, 10])


def no_exchange_code() -> dict[str, Any]:
    sizes = DATA.array("memory_by_category").copy()
    sizes[[schema.CATEGORIES.index(f"{kind}ExchangeCode") for kind in ("internal", "host")]] = 0
    return {"memory_by_category": sizes}


EVEN_CYCLES = {"compute_set_cycles_by_tile": np.full((3, TILES), 50)}
ALL_THREADS = {"compute_set_active_cycles_by_tile": COMPUTE_CYCLES}
# rule: a report in which it fires, its amount and its saving; a report in which it does not.
CASES: dict[str, tuple[dict[str, Any], float, float, dict[str, Any]]] = {
    # 1,040 bytes on the fullest tile, 640 on the mean one
    "uneven_tiles": ({}, 400, 400, needed([540] * TILES)),
    "gaps_on_fullest_tile": ({}, 1040 - 474, 566, needed(DATA.column("memory_by_tile", "total"))),
    # 300 bytes on each of 2 tiles, where 60 on each of 10 would do
    "variable_on_few_tiles": (spread(partials=300), 300, 240, {}),
    # without x, step 6 has 120 bytes live: product and message
    "largest_at_peak": (LITTLE_ALWAYS, 80, 80, {}),
    # x, in steps 6 to 8: the peak itself falls by no more, whatever goes at other steps
    "idle_at_peak": (kept_over_the_peak(), 80, 80, LITTLE_ALWAYS),
    "full_precision_at_peak": (
        LITTLE_ALWAYS, 284, 142, LITTLE_ALWAYS | table("variables", type=["half"] * 7)
    ),
    "mostly_always_live": ({}, 3382, 200, LITTLE_ALWAYS),
    # 40 bytes of internal exchange code and 24 for the host on each tile; multiply's is the most
    "code_of_exchanges": ({}, 640, 40, no_exchange_code()),
    # 12 a tile where 6 would do
    "many_vertices": (vertices(120), 440, 220, vertices(60)),
    # multiply 4 * (114 - 87), reduce 2 * (48 - 8.4), add 4 * (30 - 15)
    "uneven_work": ({}, 247, 247, EVEN_CYCLES),
    "bound_by_sync": (lasting(200, "Sync"), 800, 400, {}),
    # 4 * 300 and 24 between IPUs; uneven by 4 * (49 - 44.5) and 2 * (20 - 4)
    "bound_by_exchange": (lasting(300, "DoExchange"), 1224, 50, {}),
    # 4 * 200, of which compute can hide 642
    "bound_by_host": (lasting(200, "StreamCopy"), 800, 642, {}),
    # 5/6 of 4 * 114 and of 4 * 30, and 66/84 of 2 * 48
    "one_thread_busy": ({}, 672, 555, ALL_THREADS),
    # 4 * 114 cycles, in which 10 tiles could do 32 operations a cycle each
    "poor_use_of_matrix_units": (convolution(20), 456, 456, convolution(114 * 320)),
    # 10 steps of 10 cycles, where a sync takes 35: of 5 syncs less, the 2 of 34 between such steps
    "many_tiny_steps": (lasting(10, "OnTileExecute"), 100, 68, {}),
    "how_long_it_takes": ({}, 1024, 0, table("runs", cycles=[-1, -1])),
    # two batches have left the first of two stages when the second one gets its second
    "pipeline_rarely_full": (table("runs", batches=[2, 2], stages=[2, 2]), 0, 0, {}),
}  # fmt: skip


CAUSES = ("bound_by_an_ipu", "ipus_in_turn", "on_the_critical_path")  # in test_stages.py
HOST = ("delayed_by_host",)  # in test_host_delays.py


def test_what_saves_next_to_nothing_is_a_note() -> None:
    finding = Finding(severity="cost", what="Code", where="here", amount=900, of=ALL_TILES,
                      whole=1000, advice="Less.", saving=4, show="largest_exchanges")  # fmt: skip
    told = insight_row("code_of_exchanges", "memory", finding)
    assert (told["severity"], told["saving_share"]) == ("note", 0.004)
    assert told["advice"] == "Less. By itself that saves little."
    assert insight_row("x", "memory", replace(finding, saving=6))["severity"] == "cost"
    assert insight_row("x", "memory", replace(finding, saving=0))["severity"] == "cost"


def test_a_program_bound_by_the_host_leads_to_the_steps_of_its_slowest_stream() -> None:
    changes = CASES["bound_by_host"][0]
    (name,) = found("bound_by_host", **changes)["name"]
    programs = [step.program for step in small(**changes).execution.steps]
    assert {p.type.name for p in programs if p.name == name} == {"StreamCopyMid"}


def test_cycles_are_told_as_time_where_the_reader_asks_for_it() -> None:
    write_as(Writing(clock=1e9))
    try:
        told = " ".join(insights(small())["where"])
    finally:
        write_as(Writing())
    assert "114 ns" in told and " cycles" not in told


def found(rule: str, **changes: Any) -> Any:
    frame = insights(small(**changes))
    return frame[frame["rule"] == rule]


@pytest.mark.parametrize("rule", CASES)
def test_rule_fires_with_amount_and_saving_worked_out_by_hand(rule: str) -> None:
    changes, amount, saving, _ = CASES[rule]
    finding = found(rule, **changes)
    assert finding[["amount", "saving"]].to_numpy().tolist() == [[amount, saving]]


@pytest.mark.parametrize("rule", CASES)
def test_rule_says_nothing_where_there_is_nothing(rule: str) -> None:
    assert not len(found(rule, **CASES[rule][-1]))


@pytest.mark.parametrize(
    ("size", "severity", "amount", "saving", "what"),
    [
        (2048, "note", 1008, 0, "Fits, with 49.2 % spare on the fullest tile"),
        (1100, "cost", 60, 0, "Fits, with 5.5 % spare on the fullest tile"),
        (1000, "problem", 40, 400, "Out of memory: 2 tiles have too little"),
        (600, "problem", 440, 0, "Out of memory: 2 tiles have too little"),
    ],
)
def test_program_fits_or_not(
    size: int, severity: str, amount: int, saving: int, what: str
) -> None:  # fmt: skip
    row = found("does_it_fit", **capacity(size)).iloc[0]
    assert (row["severity"], row["amount"], row["saving"], row["what"]) == (
        severity, amount, saving, what,
    )  # fmt: skip
    assert row["tile"] == 0


@pytest.mark.parametrize(
    ("savings", "words"),
    [
        # each kind once: the larger of the variables, and the gaps
        ([(300, VARIABLES), (200, VARIABLES), (150, GAPS)],
         "at most 450 B there (300 B variables and 150 B gaps): enough."),
        ([(300, VARIABLES), (99, GAPS)],
         "at most 399 B there (300 B variables and 99 B gaps): not enough."),
        # even tiles are of all kinds: not added to the others
        ([(300, VARIABLES), (350, ALL_KINDS)], "at most 350 B there (even tiles): not enough."),
        ([(0, VARIABLES)], "and no finding saves any there."),
    ],
)  # fmt: skip
def test_savings_are_set_against_what_lacks_each_kind_once(
    savings: list[tuple[float, str]], words: str
) -> None:
    base: dict[str, Any] = {"what": "", "where": "", "of": ALL_TILES, "whole": 9, "show": ""}
    lacks = Finding(severity="problem", amount=400, tile=3, advice="Spread.", **base)
    others = [
        ("x", "memory", Finding(severity="cost", amount=1, on_fullest=on, holds=kind, **base))
        for on, kind in savings
    ]
    advice = with_what_lacks([("does_it_fit", "memory", lacks), *others])[0][2].advice
    assert advice.startswith("Spread. 400 B must go from tile 3")
    assert advice.endswith(words)


def test_what_lacks_is_told_of_a_program_that_does_not_fit_alone() -> None:
    assert (
        "must go from tile 0; the findings save at most"
        in found("does_it_fit", **capacity(1000))["advice"].iat[0]
    )
    assert "must go" not in found("does_it_fit", **capacity(1100))["advice"].iat[0]


@pytest.mark.parametrize("rule", ["largest_at_peak", "uneven_tiles", "gaps_on_fullest_tile"])
def test_savings_on_the_fullest_tile_are_of_what_it_holds(rule: str) -> None:
    # of x 8 bytes are on tile 0
    wanted = {"largest_at_peak": 8, "uneven_tiles": 400, "gaps_on_fullest_tile": 566}
    assert found(rule, **CASES[rule][0])["on_fullest"].tolist() == [wanted[rule]]


def test_every_rule_has_its_tests() -> None:
    names = {rule.__name__ for rules in RULES.values() for rule in rules}
    assert names == {*CASES, "does_it_fit", *CAUSES, *HOST}


@every_report
def test_findings_are_ordered_and_lead_to_an_analysis(name: str) -> None:
    frame = insights(opened(name))
    order = [("problem", "cost", "note").index(severity) for severity in frame["severity"]]
    assert order == sorted(order) and len(frame)
    assert set(frame["show"]) <= set(CATALOGUE)
    assert frame["saving_share"].between(0, 1).all()
    assert not frame["what"].str.contains("\n").any()


def test_rules_without_their_tables_are_listed_with_the_reason() -> None:
    report = small(steps=None, variable_intervals=None)
    missing = unchecked_rules(report).set_index("rule")["why"]
    assert "steps not recorded" in missing["bound_by_sync"]
    assert "variable_intervals" in missing["largest_at_peak"]
    assert "does_it_fit" not in missing


def test_finding_names_where_to_look() -> None:
    row = found("largest_at_peak", **LITTLE_ALWAYS).iloc[0]
    assert (row["step"], row["variable"], row["show"]) == (6, 0, "live_at_peak")
    assert row["what"] == "x takes 28.2 % of what is live at the peak"
    assert row["where"] == "step 6, multiply"
