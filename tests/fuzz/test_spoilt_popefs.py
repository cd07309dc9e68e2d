"""PopEF files, spoilt: read, or refused in a line."""

from __future__ import annotations

import random

from tests.fuzz.popefs import fault, seed, spoilt

CASES = 250


def test_spoilt_popef_files_are_refused_in_one_line() -> None:
    generator = random.Random(30)
    bodies = [spoilt(generator.randrange) for _ in range(CASES)]
    assert not {found for body in bodies if (found := fault(body))}
    assert len(set(bodies) - {seed()}) > CASES // 2
    assert not fault(seed())
