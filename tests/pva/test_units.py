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
    [(1, "1.0 s"), (0.999, "999.0 ms"), (1e-3, "1.0 ms"), (1e-6, "1.0 µs"), (5e-10, "0 ns")],
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
    [("1,024", 1024), ("1 kB", 1024), ("2 KiB", 2048), ("1.5 MB", 1572864), ("50 %", 0.5)],
)
def test_a_number_is_read_with_its_unit(text: str, value: float) -> None:
    assert units.number(text) == value


@pytest.mark.parametrize(
    ("per_second", "text"), [(99.94, "99.9 items/s"), (100, "100 items/s"), (0.5, "0.5 items/s")]
)
def test_a_rate_below_100_has_three_digits(per_second: float, text: str) -> None:
    assert units.rate(per_second) == text
