"""The page Serving: the part that takes most, batchings side by side, from a batch to its time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dashboard.address import Address, parse
from dashboard.pages import serving
from dashboard.store import Store
from pva.errors import NotRecordedError, PvaError
from tests.builders import write_report
from tests.dashboard.layouts import parts, words

SERVED = Path(__file__).parents[1] / "traces" / "served.json"


@pytest.fixture(scope="module")
def store() -> Store:
    return Store([SERVED])


def chosen(search: str = "") -> Address:
    return parse("/serving", search)


def test_the_part_that_takes_most_and_a_better_batching_head_the_page(store: Store) -> None:
    said = words(serving.answer(store, chosen(), "light")).replace("\u00a0", " ")
    assert said == (
        "A request takes 852.5 µs on average, 59.8 % of it execute; 99 of 100 take at most 1.3 ms. "
        "46 batches of 6.8 rows on average. On the device alone, no delay, 2 instances lowers the "
        "99th percentile from 793.3 µs to 695.1 µs."
    )


def test_bars_of_parts_add_up_to_the_latency_of_each_load(store: Store) -> None:
    figure = serving.load(store, chosen(), "light")
    assert {bar.name for bar in figure.data} == {"queue", "execute"}
    total = np.sum([bar.y for bar in figure.data], axis=0)
    assert 0.5 < total.min() <= total.max() < 1.5  # ms
    assert len(figure.layout.xaxis.ticktext) == len(total)


def test_bars_of_sizes_count_every_batch_once(store: Store) -> None:
    (bars,) = serving.sizes(store, chosen(), "dark").data
    assert sum(bars.y) == 46
    assert "11 batches of 8 rows, 0 rows of padding" in bars.customdata


def test_levers_of_the_address_are_replayed_beside_the_configured_ones(store: Store) -> None:
    names = serving.choices(store, chosen("delay=0, 1ms&preferred=none,8&instances=1"))["name"]
    assert names.tolist() == [
        "as configured: no delay, 1 instance", "no delay, preferred 8, 1 instance",
        "1.0 ms delay, 1 instance", "1.0 ms delay, preferred 8, 1 instance",
    ]  # fmt: skip
    with pytest.raises(PvaError, match="--what-if delay=soon: cannot be read"):
        serving.choices(store, chosen("delay=soon"))


def test_a_chosen_batch_leads_to_its_time_on_the_host(store: Store) -> None:
    assert serving.chosen(store, chosen(), "light") is None
    links = [one.href for one in parts(serving.chosen(store, chosen("batch=0"), "light"))
             if hasattr(one, "href")]  # fmt: skip
    # Sent 500 µs after the first arrival, 13 rows take two pieces of 400 µs: half of it around.
    assert links == ["/trace?range=100000-1700000"]
    assert "no batch 777" in words(serving.chosen(store, chosen("batch=777"), "light"))


def test_the_page_is_there_for_traces_with_requests_alone(store: Store, tmp_path: Path) -> None:
    assert serving.available(store, "")
    assert serving.QUESTION in words(serving.layout(store, chosen()))
    other = Store([write_report(tmp_path / "run")])
    assert not serving.available(other, "")
    with pytest.raises(NotRecordedError, match="no host trace"):
        serving.layout(other, chosen())
