"""What is shown of served batches, on three batches counted by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from pva.analysis.serving import batch_duration, batch_totals, slowest_batches

BATCHES = pd.DataFrame(
    {"batch": [0, 1, 2], "rows": [4, 2, 3], "padding": [0, 2, 0], "queue_longest_ns": [5, 90, 60],
     "upload_ns": [1, 2, 3], "execute_ns": [70, 10, 40], "download_ns": [4, 5, 6]}
)  # fmt: skip


def test_a_batch_takes_its_upload_its_program_and_its_download() -> None:
    assert batch_duration(BATCHES).tolist() == [75, 17, 49]


def test_the_slowest_batch_is_the_one_whose_first_request_took_longest() -> None:
    assert slowest_batches(BATCHES)["batch"].tolist() == [2, 1, 0]  # 109, 107, 80 ns


def test_fill_is_the_share_of_rows_that_are_not_padding() -> None:
    totals = batch_totals(BATCHES)
    assert (totals.batches, totals.mean_rows) == (3, 3.0)
    assert totals.fill == pytest.approx(9 / 11)


def test_batches_without_padding_have_no_fill() -> None:
    assert batch_totals(BATCHES.assign(padding=0)).fill is None
    assert batch_totals(BATCHES[:0]).mean_rows == 0
