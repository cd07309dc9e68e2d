"""Tables, filters, sentences, themes, and the port that the server takes."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from dashboard.address import Filter
from dashboard.elements import components
from dashboard.elements.columns import declared_columns
from dashboard.elements.components import Column
from dashboard.pages import PAGES
from dashboard.pages.documents import flat_pairs
from dashboard.pages.headlines import (
    execution_sentence,
    fit_sentence,
    liveness_sentence,
    other_runs_sentence,
)
from dashboard.server import free_socket
from dashboard.store import Store
from pva.analysis.execution.exchanges import largest_exchanges
from pva.analysis.execution.totals import execution_overview
from pva.analysis.memory.liveness import liveness_overview
from pva.analysis.memory.totals import memory_overview
from pva.errors import PvaError
from pva.plot import axes, theme
from pva.report import Report
from tests.builders import small_report, write_report

FRAME = pd.DataFrame({"name": ["conv", "Conv<b>", "add"], "bytes": [10.0, 2048.0, float("nan")]})


@pytest.mark.parametrize(
    ("chosen", "names"),
    [
        (Filter("name", "~", "CONV"), ["conv", "Conv<b>"]),
        (Filter("name", "~", "."), []),
        (Filter("name", "!~", "conv"), ["add"]),
        (Filter("name", "=", "conv"), ["conv"]),
        (Filter("bytes", ">=", "2048"), ["Conv<b>"]),
        (None, ["conv", "Conv<b>", "add"]),
    ],
)
def test_filter_keeps_the_rows_that_it_says(chosen: Filter | None, names: list[str]) -> None:
    assert components.filtered(FRAME, chosen)["name"].tolist() == names


def test_columns_of_numbers_are_as_wide_as_their_widest() -> None:
    column = Column("cycles", "Cycles", "number", 100)
    rows = [components.formatted(pd.DataFrame({"cycles": [of]}), [column])
            for of in (7, 12_266_241_446)]  # fmt: skip
    widths = [components.widened([column], some)[0].width for some in (rows[0], sum(rows, []))]
    assert widths[0] == 100
    assert widths[1] > 11 * 8.27 + 3 * 4.13  # digits and commas of DejaVu Sans of 13 pixels


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        (Filter("colour", "~", "x"), "no such column; there are name, bytes"),
        (Filter("bytes", ">", "many"), "bytes holds numbers"),
        (Filter("name", ">", "3"), "name holds text"),
    ],
)
def test_filter_that_does_not_fit_is_named(chosen: Filter, words: str) -> None:
    with pytest.raises(PvaError, match=words):
        components.filtered(FRAME, chosen)


def test_rows_of_a_table_carry_numbers_and_their_texts() -> None:
    columns = (Column("name", "Name", "name"), Column("bytes", "Bytes", "bytes"))
    rows = components.records(FRAME, columns)
    assert rows[1] == {"name": "Conv<b>", "bytes": 2048.0, "bytes_text": "2.0 kB"}
    assert rows[2] == {"name": "add", "bytes": None, "bytes_text": "–"}


def test_change_is_told_by_arrow_and_sign() -> None:
    frame = pd.DataFrame({"more": [2048, -512, 0]})
    rows = components.records(frame, (Column("more", "Change", "bytes change"),))
    assert [row["more_text"] for row in rows] == ["▲ +2.0 kB", "▼ −512 B", "0 B"]


def test_total_stays_on_top_of_its_table() -> None:
    columns = (Column("name", "Name", "name"), Column("bytes", "Bytes", "bytes"))
    total = pd.DataFrame({"name": ["Total"], "bytes": [2058.0]})
    grid = components.table("of-bytes", FRAME, columns, total=total).children[0]
    wanted = [{"name": "Total", "bytes": 2058.0, "bytes_text": "2.0 kB"}]
    assert grid.dashGridOptions["pinnedTopRowData"] == wanted


def test_small_report_is_described_in_sentences(tmp_path: Path) -> None:
    report = Store([write_report(tmp_path / "small")]).report()
    memory = memory_overview(report)
    assert fit_sentence(memory) == "Fits: the fullest tile (tile 0) uses 1.0 kB of 2.0 kB (50.8 %)."
    full = replace(memory, bytes_per_tile=1000, tiles_out_of_memory=2)
    assert fit_sentence(full) == (
        "Does not fit: 2 tiles out of memory; the fullest tile (tile 0) needs 1.0 kB of 1,000 B, "
        "40 B too much."
    )
    assert "at step 6 (multiply)" in liveness_sentence(liveness_overview(report))
    assert execution_sentence(execution_overview(report)).startswith(
        "2 recorded runs took 1,024 cycles (1.0 µs): 62.7 % compute, 21.3 % exchange, 13.7 % sync"
    )


def test_what_ran_outside_the_profile_is_named_beside_the_figures() -> None:
    assert other_runs_sentence(Report.of(small_report())) == ""
    others = {"name": ["load", "load", "seed"], "program": [1, 1, 2]} | {
        "cycles": [1000, 560, 8], "start_microseconds": [0.0] * 3, "end_microseconds": [0.0] * 3
    }  # fmt: skip
    assert other_runs_sentence(Report.of(small_report(other_runs=others))) == (
        "Set-up, not counted: load, 2 times (1,560 cycles); seed (8 cycles)."
    )


def test_nested_document_is_written_as_dotted_names() -> None:
    document = {"name": "digits", "options": {"batch": 16, "shapes": [64, 32]}, "none": None}
    assert flat_pairs(document) == [
        ("name", "digits"),
        ("options.batch", "16"),
        ("options.shapes", "[64, 32]"),
    ]


def test_every_token_has_a_colour_in_both_themes() -> None:
    sheet = theme.css()
    for name in (*theme.TOKENS, *(f"step-{kind}" for kind in theme.STEP_COLOURS)):
        assert sheet.count(f"--{name}:") == len(theme.THEMES)


def luminance(colour: str) -> float:
    """Return the relative luminance of #rrggbb (WCAG 2, relative luminance)."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("name", theme.THEMES)
@pytest.mark.parametrize("ink", ["text", "quiet", "accent", "bad", "good"])
def test_text_stands_out_from_its_ground(name: theme.Theme, ink: str) -> None:
    pair = [luminance(theme.token(part, name)) for part in (ink, "surface")]
    assert (max(pair) + 0.05) / (min(pair) + 0.05) >= 4.5  # WCAG 2, contrast (minimum)


def test_pages_have_paths_and_titles_of_their_own() -> None:
    assert len({page.PATH for page in PAGES}) == len({page.TITLE for page in PAGES}) == len(PAGES)


def test_taken_port_gives_the_next_free_one() -> None:
    with free_socket("127.0.0.1", 0) as first:
        first.listen()
        port = first.getsockname()[1]
        with free_socket("127.0.0.1", port) as second:
            assert port < second.getsockname()[1] <= port + 99


def test_no_free_port_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("in use")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with pytest.raises(OSError, match="127.0.0.1: no free port from 8050 to 8149"):
        free_socket("127.0.0.1", 8050)


def test_number_and_unit_stay_on_one_line() -> None:
    kept = components.unbroken("uses 1.0 kB of 2 MB (50.8 %) in 3 ms and 4 steps")
    assert kept == "uses 1.0\u00a0kB of 2\u00a0MB (50.8\u00a0%) in 3\u00a0ms and 4 steps"


def test_names_in_a_sentence_are_cut_and_turn_nothing_round() -> None:
    layer = "stage/" * 20
    assert components.prose(f"At {layer}: 3 B.") == f"At {layer[:40]}…{layer[-39:]}: 3\u00a0B."
    assert components.prose("a\u202egnp takes 3 cycles") == "a\ufffdgnp takes 3 cycles"
    assert components.prose("a/b" * 27) == "a/b" * 27


def test_name_in_a_plot_ends_the_direction_that_it_sets() -> None:
    assert axes.escaped("a\u202eb\u2067c") == "a\u202eb\u2067c\u2069\u202c"
    assert axes.escaped("<b>") == "&lt;b&gt;"


def test_categories_have_colours_of_their_own() -> None:
    from pva.schema import CATEGORIES

    colours = [theme.category_colour(category) for category in (*CATEGORIES, "overlapped")]
    assert len(set(colours)) == len(colours)


def test_a_column_of_an_analysis_holds_and_means_what_it_declares() -> None:
    name, sent, rate, kind = declared_columns(
        largest_exchanges, "name/name@150 Exchange", "bytes_sent@110 Sent, in all",
        "bytes_per_cycle Bytes/cycle", "kind/text Kind",
    )  # fmt: skip
    note = "Bytes that all tiles send in one execution"
    assert sent == Column("bytes_sent", "Sent, in all", "bytes", 110, note)
    assert (name.kind, name.width, name.least) == ("name", 150, 150)
    assert (rate.kind, rate.width, kind.kind) == ("number", 130, "text")
    for text in ("total Total", "bytes_sent", "bytes_sent@wide Sent"):
        with pytest.raises(ValueError, match="there are the columns kind, exchange, name, bytes_"):
            declared_columns(largest_exchanges, text)
