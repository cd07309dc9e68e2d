"""The sample reports are what today's simulator writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from pva.check import check
from pva.formats import registry

SAMPLES = Path(__file__).parent.parent / "sample_reports"
EPOCH = "1767225600"  # as in sample_reports/make.sh
SHAPES = ((24, 20), (20, 16), (16, 8))


@pytest.fixture
def again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", EPOCH)
    from simulator.examples import matmul_chain

    # The report keeps the name of its directory, but no path.
    folder = tmp_path / "matmul_chain_tiny"
    matmul_chain.run(SHAPES, target="tiny", out=folder)
    return folder


@pytest.mark.parametrize("document", ["graph.json", "execution.json"])
def test_sample_is_made_again_to_the_byte(again: Path, document: str) -> None:
    registry.write(registry.read(again), again / document)
    made, kept = (folder / document for folder in (again, SAMPLES / "matmul_chain_tiny"))
    assert made.read_bytes() == kept.read_bytes()


def test_sample_profile_has_equal_content(again: Path) -> None:
    assert registry.read(again) == registry.read(SAMPLES / "matmul_chain_tiny")


@pytest.mark.parametrize(
    "sample",
    sorted(f.parent for f in SAMPLES.glob("*/profile.pop")),
    ids=lambda folder: folder.name,
)
def test_sample_obeys_the_conservation_laws(sample: Path) -> None:
    assert check(registry.read(sample)) == []


def test_samples_stay_small() -> None:
    sizes = [f.stat().st_size for f in SAMPLES.rglob("*") if f.is_file()]
    assert max(sizes) < 2_000_000
    assert sum(sizes) < 10_000_000
