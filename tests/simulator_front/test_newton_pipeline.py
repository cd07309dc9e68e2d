"""The pipeline over two IPUs: its roots are NumPy's, its length depends on its data."""

import numpy as np
import pytest

import pva
from simulator.examples import newton_pipeline


@pytest.mark.parametrize("replicas", [1, 2])
def test_the_roots_are_those_of_numpy(replicas):
    result = newton_pipeline.run(tiles=4, replicas=replicas)
    assert result.roots.shape == (replicas, newton_pipeline.BATCHES, newton_pipeline.BATCH)
    assert result.error < 1e-6
    assert (result.roots > 0).all()


def test_the_second_run_takes_all_batches_and_its_rounds(tmp_path):
    newton_pipeline.run(tiles=4, out=tmp_path)
    report = pva.openReport(tmp_path)
    one, several = report.execution.runs
    assert (one.name, several.name) == ("one batch", "all batches")
    rounds = [sum("Divide" in step.program.name for step in run.steps) for run in (one, several)]
    # Newton's method halves a root that is far too large: more rounds for larger numbers.
    assert rounds[1] > newton_pipeline.BATCHES * rounds[0] > 0
    blocks = [block.program.name for block in report.execution.blocks(0) if block.isCommon]
    counts = {name: blocks.count(name) for name in ("Load", "Newton", "Store")}
    assert counts == dict.fromkeys(counts, 1 + newton_pipeline.BATCHES)


def test_replicas_have_batches_of_their_own():
    generator = np.random.default_rng(1)
    shape = newton_pipeline.BATCHES, 2, newton_pipeline.BATCH
    batches = generator.uniform(-1, 1, shape) * 100.0 ** np.arange(shape[0])[:, None, None]
    roots = newton_pipeline.run(tiles=4, replicas=2).roots
    assert np.allclose(roots, np.sqrt(np.abs(batches)).swapaxes(0, 1), rtol=1e-6)
