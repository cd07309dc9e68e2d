"""Single lines of the sample in the user guide, chapter "Profile summary output"."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pva.summary import layout


def test_value_begins_at_its_column() -> None:
    assert layout.left(2, "Number of IPUs", "1", 26) == "  Number of IPUs:         1"
    assert layout.left(2, "Clock Speed (approx)", "1,600.0 MHz", 26) == (
        "  Clock Speed (approx):   1,600.0 MHz"
    )


def test_label_that_reaches_its_column_keeps_one_space() -> None:
    assert layout.left(4, "Data Balance (mean / max data per tile)", "0.1%", 40) == (
        "    Data Balance (mean / max data per tile): 0.1%"
    )
    assert layout.left(2, "Total compute cycles (including idle threads)", "1,933,324", 49) == (
        "  Total compute cycles (including idle threads): 1,933,324"
    )


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("  Number of vertices:            5,564", (2, "Number of vertices", 5_564, 38)),
        ("    Including Gaps:         67,725,024 B", (4, "Including Gaps", 67_725_024, 38, " B")),
        (
            "            Host Exchange Packet Headers:            10,720 B",
            (12, "Host Exchange Packet Headers", 10_720, 59, " B"),
        ),
        (
            "          Total After Overlapping:                  394,596 B",
            (10, "Total After Overlapping", 394_596, 59, " B"),
        ),
        (
            "          Padding:                          346 B",
            (10, "Padding", 346, 47, " B"),
        ),
    ],
)
def test_count_ends_at_its_column(line: str, arguments: tuple[int, str, int, int]) -> None:
    assert layout.right(*arguments) == line


def test_names_are_as_wide_as_the_longest() -> None:
    rows = [("<anon>", 12), ("Layer1/Fwd/weights", 94_080)]
    assert list(layout.names(10, rows)) == [
        "          <anon>                        12",
        "          Layer1/Fwd/weights        94,080",
    ]


def test_memory_by_vertex_type_has_a_wider_gap() -> None:
    longest = "popnn::NonLinearityGradSupervisor<float,popnn::NonLinearityType::SIGMOID>"
    rows = [("poplin::ReduceAdd<float,float>", 117_728), (longest, 13_024)]
    assert list(layout.names(10, rows, gap=15, unit=" B")) == [
        "          poplin::ReduceAdd<float,float>" + " " * 51 + "117,728 B",
        f"          {longest}         13,024 B",
    ]


def test_vertex_types_of_a_step_stand_with_instances_and_cycles() -> None:
    row = ("poplin::ConvPartial1x1Out<float,float,true,false>", 392, 384_944)
    assert list(layout.vertex_lines(6, [row])) == [
        "      poplin::ConvPartial1x1Out<float,float,true,false>"
        "        (392 instances):      384,944"
    ]


def test_histogram_of_the_sample() -> None:
    # One star for ceil(824 / 40) = 21 tiles. The extracted sample lost a column from row 10 on.
    counts = [824, 0, 0, 0, 168, 44, 126, 30, 16, 0, 0, 2, 2, 3, 0, 0, 1]
    lines = list(layout.histogram([(3 + row, 4 + row, n) for row, n in enumerate(counts)]))
    assert lines[0] == "    Range (KB) Histogram (Excluding Gaps)               Count (tiles)"
    assert lines[1] == "        3 -  4 ****************************************    824"
    assert lines[2] == "        4 -  5                                               0"
    assert lines[5] == "        7 -  8 ********                                    168"
    assert lines[8] == "       10 - 11 **                                           30"
    assert lines[17] == "       19 - 20 *                                             1"
    assert {len(line) for line in lines[1:]} == {62}


def test_histogram_has_every_row_and_room_for_wide_ones() -> None:
    rows = [(98, 99, 5), (99, 100, 0), (100, 101, 1)]
    assert list(layout.histogram(rows)) == [
        "    Range (KB)  Histogram (Excluding Gaps)               Count (tiles)",
        "       98 -  99 *****                                         5",
        "       99 - 100                                               0",
        "      100 - 101 *                                             1",
    ]


def test_control_characters_of_a_name_are_spelt_out() -> None:
    assert layout.printable("a\x1b[31m\nb") == r"a\x1b[31m\nb"


@pytest.mark.parametrize(
    ("environment", "option", "terminal", "expected"),
    [
        ({}, None, True, True),
        ({}, None, False, False),
        ({}, True, False, True),
        ({}, False, True, False),
        ({"CLICOLOR": "0"}, True, True, False),
        ({"CLICOLOR": "1"}, None, False, False),
        ({"CLICOLOR": "0", "CLICOLOR_FORCE": "1"}, False, False, True),
        ({"CLICOLOR_FORCE": "0"}, None, False, False),
    ],
)
def test_environment_overrules_the_colours_option(
    environment: dict[str, str],
    option: bool | None,
    terminal: bool,
    expected: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("CLICOLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert layout.use_colours(option, terminal) is expected


def test_colours_add_nothing_but_colours() -> None:
    import re

    lines = ["Target:", "  Total:", "        3 -  4 ***    824", "    2 tile(s) out of memory"]
    painted = "".join(layout.texts(lines, colours=True))
    assert painted.count("\x1b[0m") == len(lines)
    assert re.sub(r"\x1b\[[\d;]*m", "", painted) == "".join(layout.texts(lines, colours=False))


def test_a_block_is_written_as_it_is() -> None:
    block = layout.Block(("    a:\n", "    b:\n"))
    assert "".join(layout.texts([block], colours=True)) == "    a:\n    b:\n"


@pytest.mark.parametrize(("term", "expected"), [("xterm-256color", True), ("dumb", False)])
def test_a_dumb_terminal_has_no_colours(
    term: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    assert layout.is_terminal(SimpleNamespace(isatty=lambda: True)) is expected
    assert layout.is_terminal(SimpleNamespace(isatty=lambda: False)) is False
    assert layout.is_terminal(object()) is False
