"""A DataLoader gives batches as large as a call takes, whether prepared ahead or not."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch: make test-torch")
pytest.importorskip("onnxscript", reason="needs onnxscript: make test-torch")

from simulator import poptorch  # noqa: E402 - asked for behind torch

Mode = poptorch.DataLoaderMode
ITEMS = torch.utils.data.TensorDataset(torch.arange(26.0), torch.arange(26) % 3)


def options() -> poptorch.Options:
    made = poptorch.Options().deviceIterations(2).replicationFactor(2)
    made.Training.gradientAccumulation(2)
    return made


@pytest.mark.parametrize("mode", list(Mode))
def test_a_batch_is_what_a_call_takes_and_the_remainder_is_dropped(mode: Mode) -> None:
    with poptorch.DataLoader(
        options(), ITEMS, 1, mode=mode, rebatched_worker_size=4
    ) as loader:  # fmt: skip
        assert loader.combinedBatchSize == 8 and len(loader) == 3
        for _ in range(2):  # passes
            found = torch.cat([x for x, _ in loader])
            assert torch.equal(found, torch.arange(24.0))


def test_a_pass_that_is_left_early_does_not_show_in_the_next() -> None:
    with poptorch.DataLoader(options(), ITEMS, 1, mode=Mode.Async) as loader:
        next(iter(loader))
        assert [float(x[0]) for x, _ in loader] == [0.0, 8.0, 16.0]


def test_what_a_data_set_raises_reaches_the_loop() -> None:
    class Broken(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return 16

        def __getitem__(self, place: int) -> Any:
            raise LookupError(f"item {place}")

    loader = poptorch.DataLoader(options(), Broken(), 1, mode=Mode.Async)
    with loader, pytest.raises(LookupError, match="item 0"):
        list(loader)


def test_shuffling_keeps_every_item() -> None:
    loader = poptorch.DataLoader(options(), ITEMS, 1, shuffle=True, drop_last=False)
    assert sorted(float(v) for x, _ in loader for v in x) == list(range(26))


def test_a_worker_size_that_does_not_divide_is_refused() -> None:
    with pytest.raises(poptorch.Error, match="divisor of the combined batch of 8"):
        poptorch.DataLoader(options(), ITEMS, 1, mode=Mode.AsyncRebatched, rebatched_worker_size=3)


@pytest.mark.parametrize("mode", list(Mode))
def test_the_rest_is_a_smaller_batch_when_it_is_kept(mode: Mode) -> None:
    with poptorch.DataLoader(
        options(), ITEMS, 1, drop_last=False, mode=mode, rebatched_worker_size=4
    ) as loader:
        assert [len(x) for x, _ in loader] == [8, 8, 8, 2] and len(loader) == 4


def test_a_batch_of_no_samples_is_refused() -> None:
    with pytest.raises(poptorch.Error, match="batch_size is 0; 1 or more is needed"):
        poptorch.DataLoader(options(), ITEMS, 0)
