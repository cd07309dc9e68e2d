"""Hosts by name, range and file; the table of who is where."""

from __future__ import annotations

from pathlib import Path

import pytest

from pva.formats.run_file import Topology
from simulator.graph.errors import PoplarError
from simulator.popdist.hosts import hosts, table


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b", ("a", "b")),
        ("h[0-2,4]", ("h0", "h1", "h2", "h4")),
        ("n[08-10]x,z", ("n08x", "n09x", "n10x", "z")),
        ("10.0.0.1", ("10.0.0.1",)),
    ],
)
def test_ranges_stand_for_hosts(text: str, names: tuple[str, ...]) -> None:
    assert hosts(text) == names


def test_a_file_has_a_host_a_line(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("# all\nh0 slots=4\n\nh1  # the last\n")
    assert hosts(str(file)) == ("h0", "h1")


@pytest.mark.parametrize("text", ["a,,b", "h[0-2", "a b", "h[0-99999999]", "../x"])
def test_no_host_is_refused(text: str) -> None:
    with pytest.raises(PoplarError, match="--host"):
        hosts(text)


def test_the_table_draws_who_is_where() -> None:
    drawn = table(Topology(hosts=("localhost", "b"), instances=4, replicas=8, ilds=2))
    assert drawn == (
        "           poprun topology\n"
        "-------------------------------------\n"
        "| hosts     | localhost |     b     |\n"
        "-------------------------------------\n"
        "| ILDs      |     0     |     1     |\n"
        "-------------------------------------\n"
        "| instances |  0  |  1  |  2  |  3  |\n"
        "-------------------------------------\n"
        "| replicas  | 0 1 | 2 3 | 4 5 | 6 7 |\n"
        "-------------------------------------"
    )


def test_a_long_name_widens_every_cell() -> None:
    lines = table(Topology(hosts=("a-long-name",), instances=2, replicas=2)).splitlines()[1:]
    assert {len(line) for line in lines} == {len("| hosts     | a-long-name |")}
