"""Rows as a table, as JSON and as CSV."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.shared import output

FRAME = pd.DataFrame(
    {
        "tile": [0, 12],
        "name": ["x", "poplin::Reduce<float,float>"],
        "bytes": [1_234_567, 8],
        "tile_balance": [0.5, float("nan")],
        "recorded": [True, False],
    }
)


@dataclass(frozen=True)
class Overview:
    """What an analysis may give instead of a frame."""

    cycles: int = 1_024
    compute_share: float = 0.4148
    tile_cycles: dict[str, int] = field(default_factory=lambda: {"sync": 20})


def printed(capsys: pytest.CaptureFixture[str], result: Any, *options: Any) -> list[str]:
    output.write_result(result, *options)
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("seconds", "12.5 s"),
        ("trace_seconds", "12.5 s"),
        ("latency", "12.5 s"),
        ("rows_per_second", "12.5"),
    ],
)
def test_a_column_in_seconds_has_their_unit(
    capsys: pytest.CaptureFixture[str], column: str, text: str
) -> None:
    assert printed(capsys, pd.DataFrame({column: [12.5]}), "table")[1].strip() == text


def test_table_puts_numbers_right_with_commas_and_shares_as_percentages(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert printed(capsys, FRAME, "table") == [
        "tile  name                             bytes  tile_balance  recorded",
        "   0  x                            1,234,567        50.0 %  yes",
        "  12  poplin::Reduce<float,float>          8                no",
    ]


def test_table_of_nothing_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, FRAME.head(0), "table")[1:] == ["(no rows)"]


def test_table_says_how_many_rows_it_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    frame = pd.DataFrame({"tile": range(1216)})
    assert printed(capsys, frame, "table")[-1] == "... 1,176 more rows; --limit 0 shows all"
    assert len(printed(capsys, frame, "table", 0)) == 1217
    assert len(printed(capsys, frame, "csv")) == 1217


def test_json_is_one_list_of_objects(capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads("\n".join(printed(capsys, FRAME, "json")))
    assert rows[1] == {
        "tile": 12, "name": "poplin::Reduce<float,float>", "bytes": 8, "tile_balance": None,
        "recorded": False,
    }  # fmt: skip
    assert json.loads("".join(printed(capsys, FRAME.head(0), "json"))) == []


def test_csv_quotes_what_holds_commas(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, FRAME, "csv")
    assert lines[2] == '12,"poplin::Reduce<float,float>",8,,False'


def test_dataclass_is_fields_in_a_table_and_an_object_in_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert printed(capsys, Overview(), "table") == [
        "field              value",
        "cycles             1,024",
        "compute_share     41.5 %",
        "tile_cycles.sync      20",
    ]
    assert json.loads("".join(printed(capsys, Overview(), "json"))) == {
        "cycles": 1024, "compute_share": 0.4148, "tile_cycles": {"sync": 20},
    }  # fmt: skip


def test_times_in_nanoseconds_are_shown_with_their_unit(capsys: pytest.CaptureFixture[str]) -> None:
    frame = pd.DataFrame({"label": ["load"], "total_ns": [1_500_000], "pid": [10_908]})
    assert printed(capsys, frame, "table") == ["label   total    pid", "load   1.5 ms  10908"]


def test_large_fractions_are_written_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    frame = pd.DataFrame({"start_microseconds": [1_795_250_484_123_456.0, 0.5]})
    lines = printed(capsys, frame, "table")[1:]
    assert [line.strip() for line in lines] == ["1,795,250,484,123,456", "0.5"]


def test_shares_of_time_are_percentages_and_cycles_are_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    output.write_result(pd.DataFrame({"compute": [0.25], "waiting": [0.5]}), "table")
    output.write_result(pd.DataFrame({"compute": [25]}), "table")
    assert [line.split() for line in capsys.readouterr().out.splitlines()[1::2]] == [
        ["25.0", "%", "50.0", "%"], ["25"],
    ]  # fmt: skip


def test_shares_of_a_dataclass_are_percentages(capsys: pytest.CaptureFixture[str]) -> None:
    output.write_rows(output.Rows(("time_shares.sync",), [(0.604,)], 1))
    assert capsys.readouterr().out.splitlines()[1] == "          60.4 %"


def test_control_characters_of_names_are_spelt_out(capsys: pytest.CaptureFixture[str]) -> None:
    frame = pd.DataFrame({"name": ["\x1b[31mred\n"]})
    assert printed(capsys, frame, "table")[1] == r"\x1b[31mred\n"


def test_json_and_csv_on_a_terminal_cannot_steer_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pd.DataFrame({"na\u202eme": ["\x9b31mred\x07"]})
    assert json.loads("".join(told := printed(capsys, frame, "json"))) == frame.to_dict("records")
    piped = printed(capsys, frame, "csv")
    monkeypatch.setattr(output.sys.stdout, "isatty", lambda: True, raising=False)
    told += [*printed(capsys, frame, "csv"), *printed(capsys, frame, "table")]
    assert all(line.isprintable() for line in told)
    assert piped == ["na\u202eme", "\x9b31mred\x07"]  # as it is for a program


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=8), st.integers()), min_size=1, max_size=8))
def test_csv_and_json_give_every_value_back(rows: list[tuple[str, int]]) -> None:
    columns = ("name", "value")
    text = "\n".join(output._json_lines(columns, rows))
    assert [(row["name"], row["value"]) for row in json.loads(text)] == rows
    lines = "\n".join(output._csv_lines(columns, rows)) + "\n"
    back = list(csv.reader(io.StringIO(lines, newline="")))
    assert [(name, int(value)) for name, value in back[1:]] == rows


def test_what_does_not_fit_on_a_terminal_is_paged(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    paged: list[str] = []
    monkeypatch.setattr(output.click, "echo_via_pager", paged.append)
    monkeypatch.setattr(output.sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("LINES", "5")
    monkeypatch.delenv("LESS", raising=False)
    monkeypatch.delenv("CI", raising=False)
    output.write_paged(["short"] * 4)
    assert paged == [] and capsys.readouterr().out == "short\n" * 4
    output.write_paged(["short"] * 5)
    output.write_paged(["x" * 21])
    assert paged == ["\n".join(["short"] * 5), "x" * 21]


def test_terminal_of_a_ci_system_has_no_pager(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output.click, "echo_via_pager", lambda _: pytest.fail("waits for a key"))
    monkeypatch.setattr(output.sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("LINES", "5")
    monkeypatch.setenv("CI", "true")
    output.write_paged(["short"] * 9)
    assert capsys.readouterr().out == "short\n" * 9
