"""Exchanges and streams, by hand on the small report and by loops on all."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from pva import schema
from pva.analysis.execution import exchanges
from pva.data.dataset import Dataset
from pva.errors import NotRecordedError
from pva.report import Report
from tests.analysis.samples import ARRAYS, every_report, executed, longer, opened, small

MOVED = {"DoExchange": ("received", "sent"), "GlobalExchange": ("global_received", "global_sent"),
         "StreamCopy": ("from_host", "to_host")}  # fmt: skip


def test_exchanges_stand_by_the_bytes_that_they_move() -> None:
    frame = exchanges.largest_exchanges(small())
    columns = ["kind", "name", "bytes_received", "bytes_sent", "cycles", "code_bytes"]
    assert frame[columns].to_numpy().tolist() == [
        ["host", "x/StreamCopy", 80, 0, 7, 20],
        ["internal", "multiply/ExchangePre", 40, 40, 49, 40],
        ["between IPUs", "reduce/GlobalPre/GlobalExchange", 16, 16, 20, 0],
        ["host", "y/StreamCopy", 0, 4, 5, 4],
    ]
    # The busiest tile of each: 8 bytes in 7 cycles, 4 in 49, 8 in 20, 4 in 5.
    assert frame["bytes_per_cycle"].tolist() == pytest.approx([8 / 7, 4 / 49, 8 / 20, 4 / 5])


def test_spread_names_the_busiest_tiles() -> None:
    received, sent = np.full((1, 10), 4), np.zeros((1, 10), dtype=int)
    received[0, 3], sent[0, 7] = 20, 8
    report = small(exchange_bytes_received=received, exchange_bytes_sent=sent)
    row = exchanges.exchange_spread(report).set_index("kind").loc["internal"]
    assert row[["receivers", "busiest_receiver", "busiest_receiver_bytes"]].tolist() == [10, 3, 20]
    assert row[["senders", "busiest_sender", "busiest_sender_bytes"]].tolist() == [1, 7, 8]
    assert [row["fan_out"], row["receive_balance"]] == pytest.approx([56 / 8, 5.6 / 20])


def test_an_exchange_without_senders_has_no_busiest_one() -> None:
    row = exchanges.exchange_spread(small()).set_index("name").loc["x/StreamCopy"]
    assert row[["senders", "busiest_sender", "send_balance", "fan_out"]].tolist() == [0, -1, 0, 0]


@every_report
def test_every_exchange_is_there_with_its_bytes(name: str) -> None:
    data = opened(name).dataset
    frame = exchanges.largest_exchanges(opened(name))
    for way in ("received", "sent"):
        total = sum(data.array(f"{array}_bytes_{way}").sum() for _, array in MOVING)
        assert frame[f"bytes_{way}"].sum() == total
    assert len(exchanges.exchange_spread(opened(name))) == len(frame)


MOVING = [ARRAYS[kind] for kind in MOVED]


def test_two_ipus_tell_exactly_who_sent_to_whom() -> None:
    frame = exchanges.exchange_matrix(small())
    # Internal, four times: 5 tiles * 4 bytes on each IPU; global, twice: 8 bytes each way.
    assert frame.drop(columns="share").to_numpy().tolist() == [
        [0, 0, 80, 80, True], [1, 1, 80, 80, True], [0, 1, 16, 16, True], [1, 0, 16, 16, True],
    ]  # fmt: skip
    assert frame["share"].sum() == pytest.approx(1)


def of_five_ipus(received: list[int], sent: list[int]) -> set[tuple[int, ...]]:
    """Return the bounds on one exchange between five IPUs of two tiles."""
    target = dict(small().dataset.table("target")) | {"num_ipus": [5], "tiles_per_ipu": [2]}
    report = Report.of(
        Dataset.of(
            {name: small().dataset.table(name) for name in ("steps", "programs")}
            | {"target": target},
            {
                "exchange_bytes_received": np.zeros((1, 10), dtype=int),
                "exchange_bytes_sent": np.zeros((1, 10), dtype=int),
                "external_exchange_bytes_received": [received],
                "external_exchange_bytes_sent": [sent],
            },
        )
    )
    frame = exchanges.exchange_matrix(report)
    return {tuple(pair) for pair in frame.iloc[:, :4].to_numpy().tolist()}


def test_one_sender_of_a_broadcast_is_where_all_bytes_come_from() -> None:
    # Twice: 3 bytes to both tiles of IPU 1 and one of IPU 4.
    found = of_five_ipus([0, 0, 3, 3, 0, 0, 0, 0, 3, 0], [3] + [0] * 9)
    assert found == {(0, 1, 12, 12), (0, 4, 6, 6)}


def test_several_senders_and_receivers_leave_bounds() -> None:
    # IPUs 0 and 1 send 5 and 3 bytes, IPUs 3 and 4 receive 6 and 2: at least 3 of the 6 are of
    # IPU 0. Executed twice.
    found = of_five_ipus([0] * 6 + [6, 0, 2, 0], [5, 0, 3] + [0] * 7)
    assert found == {(0, 3, 6, 10), (1, 3, 2, 6), (0, 4, 0, 4), (1, 4, 0, 4)}


@every_report
def test_traffic_is_that_of_a_loop_over_steps(name: str) -> None:
    report = opened(name)
    moved: dict[str, np.ndarray] = {}
    for kind, _, row in executed(report):
        for column, way in zip(MOVED.get(kind, ()), ("received", "sent"), strict=False):
            by_tile = report.dataset.array(f"{ARRAYS[kind][1]}_bytes_{way}")[row]
            moved[column] = moved.get(column, 0) + by_tile
    frame = exchanges.traffic_by_tile(report).sort_values("tile")
    columns = [column for names in MOVED.values() for column in names]
    for column in columns:
        assert frame[column].tolist() == np.broadcast_to(moved.get(column, 0), len(frame)).tolist()
    assert frame[columns].sum(axis=1).tolist() == frame["bytes"].tolist()
    matrix = exchanges.exchange_matrix(report)
    received = frame[["received", "global_received"]].to_numpy().sum()
    assert matrix["bytes_at_least"].sum() <= received <= matrix["bytes_at_most"].sum()


@every_report
def test_streams_are_those_of_a_loop_over_steps(name: str) -> None:
    report = opened(name)
    sums: dict[str, Counter[str]] = {}
    for kind, step, row in executed(report):
        if kind == "StreamCopy":
            stream = sums.setdefault(step["name"] or "(StreamCopy)", Counter())
            arrays = [report.dataset.array(f"host_exchange_bytes_{w}")[row].sum()
                      for w in ("received", "sent")]  # fmt: skip
            stream.update(executions=1, bytes_in=int(arrays[0]), bytes_out=int(arrays[1]),
                          cycles=step["cycles"], exposed_cycles=longer(step))  # fmt: skip
    frame = exchanges.stream_bandwidth(report).set_index("name")
    for stream, wanted in sums.items():
        assert {key: frame.loc[stream, key] for key in wanted} == wanted
    assert len(frame) == len(sums)


def test_bandwidth_is_bytes_in_the_time_of_the_copies() -> None:
    frame = exchanges.stream_bandwidth(small()).set_index("name")
    # 80 bytes in 7 cycles of 1 ns, 4 bytes in 5; each twice.
    assert frame["bytes_per_second"].tolist() == pytest.approx([80 / 7e-9, 4 / 5e-9])
    assert frame["executions"].tolist() == [2, 2]


def test_code_of_exchanges_is_told_by_kind_of_instruction() -> None:
    (row,) = exchanges.exchange_code(small()).to_dict("records")
    used = {key: value for key, value in row.items() if value and key not in ("program", "name")}
    assert used == {"total": 40, "exchange": 8, "send": 4, "receive_mux": 28}
    assert row["name"] == "multiply/ExchangePre"
    with pytest.raises(NotRecordedError, match="exchange_instructions not recorded"):
        exchanges.exchange_code(small(exchange_instructions=None))


def test_a_kind_of_exchange_that_no_program_runs_need_not_be_recorded() -> None:
    table = dict(small().dataset.table("programs"))
    table["type"] = table["type"].copy()
    table["type"][8] = schema.PROGRAM_TYPES.index("WriteUndef")  # was the exchange between IPUs
    names = ("bytes_received", "bytes_sent", "cycles", "code_bytes")
    report = small(programs=table, **{f"external_exchange_{name}": None for name in names})
    assert set(exchanges.largest_exchanges(report)["kind"]) == {"internal", "host"}
    assert len(exchanges.exchange_spread(report)) == 3
    assert exchanges.exchange_matrix(report)["bytes_at_most"].tolist() == [80, 80]
    assert exchanges.traffic_by_tile(report)["global_received"].sum() == 0
