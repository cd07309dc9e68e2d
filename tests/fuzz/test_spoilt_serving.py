"""What a server reads, spoilt: read, or refused in a line."""

from __future__ import annotations

import random

import pytest

from tests.fuzz.served import KINDS

CASES = 150


@pytest.mark.parametrize("name", KINDS)
def test_what_a_server_reads_is_refused_in_one_line_where_it_is_spoilt(name: str) -> None:
    generator, kind = random.Random(30), KINDS[name]
    inputs = [kind.spoilt(generator.randrange) for _ in range(CASES)]
    assert not {found for one in inputs if (found := kind.fault(one))}
    assert len(set(map(repr, inputs))) > CASES // 2
