"""Spoilt files of every format give lines of PvaError and nothing else.

Each is walked in a process of its own: every frame, object, analysis, law and export, within ten
seconds and 256 MB (see `tests.fuzz.zygote`), warnings being errors. `python -m tests.fuzz.many`
does the same for longer.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.isolated import Isolated
from tests.fuzz.mutations import spoilt
from tests.fuzz.seeds import Seed, seeds

CASES = 15  # of each of the seeds
CHOICES = st.lists(st.integers(0, 2**32 - 1), min_size=40, max_size=40)


@pytest.fixture(scope="module")
def isolated() -> Iterator[Isolated]:
    process = Isolated()
    yield process
    print(f"{process.cases} spoilt files walked")
    process.close()


@pytest.mark.parametrize("seed", seeds(), ids=lambda seed: seed.name)
def test_a_valid_file_is_walked_without_a_fault(
    tmp_path: Path, isolated: Isolated, seed: Seed
) -> None:
    verdict = isolated.walk(seed.write(tmp_path / "report"))
    assert verdict.opened
    assert verdict.faults == []


@pytest.mark.parametrize("seed", seeds(), ids=lambda seed: seed.name)
@settings(
    max_examples=CASES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(choices=CHOICES)
def test_a_spoilt_file_is_told_in_lines(isolated: Isolated, seed: Seed, choices: list[int]) -> None:
    numbers = iter(choices)
    changed = spoilt(seed, lambda count: next(numbers, 0) % count)
    with tempfile.TemporaryDirectory() as directory:
        assert isolated.walk(changed.write(Path(directory) / "report")).faults == []
