"""Numbers as text: both sides of each unit's threshold, by hand."""

from __future__ import annotations

from contextvars import copy_context

import pytest

from pva import units


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"), (1, "1 B"), (1023, "1,023 B"), (1024, "1.0 kB"), (1536, "1.5 kB"),
        (1024**2 - 1, "1,024.0 kB"), (1024**2, "1.0 MB"), (1024**3 - 1, "1,024.0 MB"),
        (1024**3, "1.0 GB"), (-1023, "-1,023 B"), (-1024, "-1.0 kB"),
    ],
)  # fmt: skip
def test_bytes_have_the_largest_unit_that_keeps_them_at_one_or_above(value: int, text: str) -> None:
    assert units.size(value).replace("\N{MINUS SIGN}", "-") == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1, "1.0 s"),
        (0.999, "999.0 ms"),
        (1e-3, "1.0 ms"),
        (1e-6, "1.0 µs"),
        (5e-9, "5 ns"),
        (5e-10, "0 ns"),
    ],
)
def test_times_have_the_largest_unit_that_keeps_them_at_one_or_above(
    seconds: float, text: str
) -> None:
    assert units.duration(seconds) == text


@pytest.mark.parametrize(
    ("manner", "text"), [("kB", "1.0 kB"), ("KiB", "1.0 KiB"), ("SI", "1.0 kB"), ("B", "1,024 B")]
)
def test_a_manner_of_writing_holds_in_its_context_alone(manner: str, text: str) -> None:
    def written() -> str:
        units.write_as(units.Writing(manner))
        return units.size(1024)

    assert copy_context().run(written) == text
    assert units.size(1024) == "1.0 kB"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,024", 1024),
        ("1,024 B", 1024),
        ("1 kB", 1024),
        ("2 KiB", 2048),
        ("1.5 MB", 1572864),
        ("50 %", 0.5),
    ],
)
def test_a_number_is_read_with_its_unit(text: str, value: float) -> None:
    assert units.number(text) == value


@pytest.mark.parametrize(
    ("per_second", "text"),
    [
        (99.94, "99.9 items/s"),
        (100, "100 items/s"),
        (100.4, "100 items/s"),
        (1234, "1,234 items/s"),
    ],
)
def test_a_rate_below_100_has_three_digits(per_second: float, text: str) -> None:
    assert units.rate(per_second) == text


def test_cycles_have_their_time_beside_them() -> None:
    assert units.cycles(1500, 1e9) == "1,500 (1.5 µs)"


@pytest.mark.parametrize(
    ("clock", "short", "words"), [(0.0, "1,500", "1,500 cycles"), (1e9, "1.5 µs", "1.5 µs")]
)
def test_cycles_are_written_as_time_where_the_clock_is_known(
    clock: float, short: str, words: str
) -> None:
    def texts() -> tuple[str, str]:
        units.write_as(units.Writing(clock=clock))
        return units.cycles_or_time(1500), units.cycles_in_words(1500)

    assert copy_context().run(texts) == (short, words)


def test_a_share_is_a_percentage_with_one_decimal() -> None:
    assert [units.share(value) for value in (0, 0.1234, 1)] == ["0.0 %", "12.3 %", "100.0 %"]


def test_once_is_one_time() -> None:
    assert [units.times(n) for n in (0, 1, 2, 1000)] == [
        "0 times", "once", "2 times", "1,000 times"]  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")],
)
def test_the_last_of_a_list_stands_after_and(texts: list[str], sentence: str) -> None:
    assert units.listed(texts) == sentence


def test_a_clock_is_written_in_megahertz() -> None:
    assert units.frequency(1.85e9) == "1,850.0 MHz"
    assert units.frequency(1e12) == "1,000,000.0 MHz"  # a megahertz is a million hertz exactly
