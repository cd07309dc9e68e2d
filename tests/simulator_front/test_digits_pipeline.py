"""The demo's program: what its two reports tell, by analyses and not by costs of the day."""

from __future__ import annotations

import numpy as np
import pytest

from pva.analysis.execution.main_runs import main_run
from pva.analysis.insight_rules.causes import bound_by_an_ipu
from pva.analysis.memory.liveness import liveness_curve
from pva.analysis.memory.totals import fullest_tiles
from pva.analysis.waiting.stages import ipu_balance
from pva.report import Report, openReport
from simulator.examples import digits_pipeline as example

pytestmark = pytest.mark.xdist_group("digits pipeline")  # its reports are written in one process

Reports = dict[str, Report]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Reports:
    """Write both reports, of one epoch each, without values."""
    folder = tmp_path_factory.mktemp("digits_pipeline")
    for name, placed in (("crowded", example.CROWDED), ("even", example.EVEN)):
        example.measure(folder / name, epochs=1, placed=placed)
    return {name: openReport(folder / name) for name in ("crowded", "even")}


def test_it_fits_and_the_fullest_tile_is_at_least_a_third_full(reports: Reports) -> None:
    for report in reports.values():
        fullest = fullest_tiles(report).iloc[0]
        assert fullest["free"] >= 0
        assert fullest["bytes"] * 3 >= report.dataset.value("target", "bytes_per_tile")


def test_what_is_live_has_a_clear_peak(reports: Reports) -> None:
    live = liveness_curve(reports["crowded"])
    assert live["total"].max() >= 1.15 * live["total"].median()
    assert live["total"].max() >= 3 * live["always_live"].iloc[0]


def test_insights_name_the_ipu_that_bounds_it_and_what_to_move(reports: Reports) -> None:
    (finding,) = bound_by_an_ipu(reports["crowded"])
    assert finding.what.startswith("IPU 0 bounds the")
    assert "Move block2/attention/" in finding.advice and "to IPU 1" in finding.advice
    assert ipu_balance(reports["crowded"]).set_index("ipu")["waits"][1] > 0.4


def test_what_insights_advise_makes_it_faster(reports: Reports) -> None:
    slow, fast = (main_run(reports[name]) for name in ("crowded", "even"))
    assert slow.items == fast.items == example.runs_of(1) * example.IMAGES
    assert fast.items_per_second > 1.2 * slow.items_per_second
    assert ipu_balance(reports["even"])["waits"].max() < 0.25


def test_an_image_is_shifted_down_and_turned_by_a_quarter() -> None:
    image = np.random.default_rng(1).random((8, 8)).astype(np.float32)
    same = example.augmented(image, 0.0, np.zeros(2, np.float32))
    np.testing.assert_array_equal(same, image)
    up = example.augmented(image, 0.0, np.array([1.0, 0.0], np.float32))
    np.testing.assert_array_equal(up, np.vstack([image[1:], np.zeros((1, 8))]))
    half = example.augmented(image, 0.0, np.array([0.0, 0.5], np.float32))
    np.testing.assert_allclose(half[:, :7], (image[:, :7] + image[:, 1:]) / 2, rtol=1e-6)
    turned = example.augmented(image, np.pi / 2, np.zeros(2, np.float32))
    np.testing.assert_allclose(turned, np.rot90(image, -1), atol=1e-5)


def test_patches_are_squares_of_two_by_two() -> None:
    images = np.arange(128, dtype=np.float32).reshape(2, 8, 8)
    patches = example.in_patches(images)
    for image in range(2):
        for place in range(16):
            row, column = 2 * (place // 4), 2 * (place % 4)
            square = images[image, row : row + 2, column : column + 2]
            np.testing.assert_array_equal(patches[image, place], square.ravel())


def test_an_epoch_shows_each_image_at_most_once_with_its_label() -> None:
    loaded = list(example.batches(1))
    assert len(loaded) == example.runs_of(1) == 11
    assert {images.shape for images, _ in loaded} == {(example.IMAGES, 16, 4)}
    labels = np.concatenate([labels for _, labels in loaded])
    assert (np.bincount(labels) <= np.bincount(example.load_digits().train_labels)).all()
