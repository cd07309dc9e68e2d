"""Who sends to whom by groups of tiles: sums, bounds, and what can be known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pva.analysis import exchange_flows, exchange_matrix, largest_exchanges
from pva.analysis.attribution import executions_of_rows, moved_bytes
from pva.analysis.execution.traffic import flow_totals
from pva.analysis.selection import SelectionError
from tests.analysis.samples import every_report, opened, small

KINDS = {"internal": "DoExchange", "between IPUs": "GlobalExchange"}


@every_report
@pytest.mark.parametrize("groups", [1, 5, 1 << 20])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_add_up_to_what_tiles_receive(name: str, kind: str, groups: int) -> None:
    report = opened(name)
    received, sent = moved_bytes(report, KINDS[kind])
    counts = executions_of_rows(report, KINDS[kind], len(received))
    frame = exchange_flows(report, groups=groups, kind=kind)
    known = counts * (sent.sum(axis=1) > 0)  # a sender is needed
    assert np.isclose(frame["bytes"].sum(), (known @ received).sum())
    assert (frame["bytes_at_least"] <= frame["bytes"] + 1e-6).all()
    assert (frame["bytes"] <= frame["bytes_at_most"] + 1e-6).all()


@every_report
def test_ipu_by_ipu_is_within_the_bounds_of_the_matrix_of_ipus(name: str) -> None:
    frame = exchange_flows(opened(name), groups=1).set_index(["from_ipu", "to_ipu"])
    bounds = exchange_matrix(opened(name)).set_index(["from_ipu", "to_ipu"])
    for pair, row in bounds.iterrows():
        moved = frame["bytes"].get(pair, 0.0)
        assert row["bytes_at_least"] - 1e-6 <= moved <= row["bytes_at_most"] + 1e-6


def test_one_sender_is_exact_and_others_share_by_what_they_send() -> None:
    # Two tiles an IPU: 0 and 1 on the first. Exchange 0: tile 0 sends 8 to tile 1; exchange 1:
    # tiles 0 and 1 send 30 and 10, tile 1 receives 40.
    received, sent = (np.zeros((2, 10), dtype=np.int64) for _ in range(2))
    sent[0, 0], received[0, 1] = 8, 8
    sent[1, :2], received[1, 1] = (30, 10), 40
    report = small(exchange_bytes_received=received, exchange_bytes_sent=sent)
    one = exchange_flows(report, groups=10, kind="internal", exchange=0)
    assert one[["from_tile", "to_tile", "bytes", "exact"]].to_numpy().tolist() == [[0, 1, 8, True]]
    both = exchange_flows(report, groups=10, kind="internal", exchange=1)
    assert both[["from_tile", "to_tile", "bytes"]].to_numpy().tolist() == [[0, 1, 30], [1, 1, 10]]


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(SelectionError, match="kind host: not there"):
        exchange_flows(small(), kind="host")
    count = (largest_exchanges(small())["kind"] == "internal").sum()
    with pytest.raises(SelectionError, match=f"exchange {count}: not there"):
        exchange_flows(small(), kind="internal", exchange=int(count))


def test_flows_that_are_recorded_are_exact_by_the_groups_of_the_report() -> None:
    # Internal, four times: 20 bytes inside each IPU; global, twice: 8 bytes each way.
    frame = exchange_flows(small(), groups=2)
    assert frame[["from_ipu", "to_ipu", "bytes", "exact"]].to_numpy().tolist() == [
        [0, 0, 80, True], [1, 1, 80, True], [0, 1, 16, True], [1, 0, 16, True],
    ]  # fmt: skip


@pytest.mark.parametrize("groups", [1, 10])
def test_an_old_report_or_finer_groups_give_estimates(groups: int) -> None:
    old = small(exchange_flows=None, external_exchange_flows=None)
    finer = small() if groups == 10 else old
    assert exchange_flows(finer, groups=groups).equals(exchange_flows(old, groups=groups))


def test_flows_are_summed_inside_ipus_and_between_them() -> None:
    flows = pd.DataFrame(
        {"from_ipu": [0, 0, 1], "to_ipu": [0, 1, 1], "bytes": [10.0, 30.0, 40.0],
         "exact": [True, False, True]}
    )  # fmt: skip
    totals = flow_totals(flows)
    assert (totals.inside, totals.between, totals.exact) == (50.0, 30.0, 0.625)
    assert flow_totals(flows[:0]).exact == 0.0
