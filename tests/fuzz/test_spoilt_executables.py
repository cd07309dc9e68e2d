"""The file of an executable, spoilt: read, or refused in a line; in memory that the file allows."""

from __future__ import annotations

import io
import json
import random
import tracemalloc

import pytest

from simulator.poplar import Executable, PoplarError
from tests.fuzz.executables import fault, seed, spoilt

CASES = 300


def test_spoilt_executables_are_refused_in_one_line() -> None:
    generator = random.Random(22)
    bodies = [spoilt(generator.randrange) for _ in range(CASES)]
    assert not {found for body in bodies if (found := fault(body))}
    assert len(set(bodies) - {seed()}) > CASES // 2


def test_every_cut_of_an_executable_is_refused() -> None:
    for end in range(0, len(seed()), 509):
        with pytest.raises(PoplarError, match=r"^executable: [^\n]*$"):
            Executable.deserialize(io.BytesIO(seed()[:end]))


@pytest.mark.parametrize("part", ["table", "arrays"])
def test_a_size_that_the_file_does_not_have_takes_no_memory(part: str) -> None:
    line, rest = seed().split(b"\n", 1)
    header = json.loads(line) | {part: 1 << 40}
    body = json.dumps(header).encode() + b"\n" + rest
    tracemalloc.start()
    with pytest.raises(PoplarError, match="damaged"):
        Executable.deserialize(io.BytesIO(body))
    assert tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()
