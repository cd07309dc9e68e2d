"""The made report that speed is measured on is one that a program could leave."""

from pathlib import Path

import pytest

from benchmarks.large_report import large_report
from benchmarks.synthetic.size import Size
from pva.check import check
from pva.formats import registry

SMALL = Size(
    ipus=2, tiles_per_ipu=8, compute_sets=6, vertex_types=5, exchanges=7, external_exchanges=2,
    host_exchanges=2, programs=300, body_segments=24, variables=60, debug_contexts=5, steps=290,
)  # fmt: skip


def test_it_keeps_every_law() -> None:
    assert check(large_report(SMALL)) == []


def test_it_has_the_steps_asked_for() -> None:
    # 73 steps a pass, two passes in each of two runs
    assert large_report(SMALL).length("steps") == 2 * 2 * 73
    assert large_report(SMALL).column("runs", "end_step").tolist() == [146, 292]


@pytest.mark.parametrize("suffix", [".pop", ".json", ".cbor"])
def test_one_seed_gives_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    files = [tmp_path / f"{name}{suffix}" for name in ("first", "second", "other")]
    for file, seed in zip(files, (3, 3, 4), strict=True):
        registry.write(large_report(SMALL, seed), file)
    first, second, other = (file.read_bytes() for file in files)
    assert first == second != other
