"""Chrome trace JSON of several writers, by hand: what opens, what it means, what is counted.

Layouts are those of the "Trace Event Format" of the Catapult project, of the profiler of PyTorch
(pytorch/kineto, libkineto/src/output_json.cpp) and of viztracer (its `save` as JSON).
"""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from pva.errors import DamagedFileError, UnknownFormatError
from pva.formats import memory_limit
from pva.formats.traces import chrome_events, json_pieces
from pva.trace import Trace, openTrace

Row = tuple[str, int, int, int]  # label, begin, duration and depth


def trace_of(tmp_path: Path, *events: dict[str, Any], **around: Any) -> Trace:
    """Write events, each with what all have unless it says otherwise, and open them."""
    common = {"pid": 1, "tid": 2, "name": "a", "cat": "c"}
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [common | event for event in events], **around}))
    return openTrace(path)


def rows(trace: Trace) -> list[Row]:
    frame = trace.frames.events()[["label", "begin_ns", "duration_ns", "depth"]]
    return [tuple(row) for row in frame.to_numpy().tolist()]


def test_complete_events_are_told_in_nanoseconds(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        {"ph": "X", "ts": 1000.125, "dur": 3.5, "name": "outer"},
        {"ph": "X", "ts": 1001, "dur": 1, "name": "inner", "args": {"x": [1]}},
    )
    assert rows(trace) == [("outer", 0, 3500, 0), ("inner", 875, 1000, 1)]
    (event,) = trace.process(1).thread(2).events
    (child,) = event.children()
    assert (child.channel, child.metadata, event.metadata) == ("c", '{"x": [1]}', None)
    assert trace.problems == ()


def test_begins_and_ends_match_as_brackets_do(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        {"ph": "B", "ts": 1, "name": "outer"},
        {"ph": "B", "ts": 2, "name": "inner"},
        {"ph": "E", "ts": 4},
        {"ph": "B", "ts": 3, "tid": 3, "name": "other thread"},
        {"ph": "E", "ts": 9, "name": "outer"},
        {"ph": "E", "ts": 5, "tid": 3},
    )
    assert rows(trace) == [
        ("outer", 0, 8000, 0), ("inner", 1000, 2000, 1), ("other thread", 2000, 2000, 0),
    ]  # fmt: skip


def test_what_does_not_match_is_open_or_counted(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path, {"ph": "E", "ts": 1}, {"ph": "B", "ts": 2}, {"ph": "X", "ts": 3, "dur": 4}
    )
    assert trace.frames.events()["open"].tolist() == [True, False]
    assert trace.frames.events()["duration_ns"].tolist() == [5000, 4000]
    assert trace.problems == ("1 event of phase E, e or F without a begin, left out",)


def test_an_empty_category_is_none(tmp_path: Path) -> None:
    times = {"ph": "X", "ts": 1, "dur": 1}
    trace = trace_of(tmp_path, {**times, "cat": ""}, {**times, "cat": "io"})
    assert [channel for channel in trace.channels if channel != "io"] == ["no category"]


def test_events_out_of_order_are_put_in_order(tmp_path: Path) -> None:
    events = [{"ph": "X", "ts": ts, "dur": 1, "name": str(ts)} for ts in (5, 3, 9, 1)]
    trace = trace_of(tmp_path, {"ph": "E", "ts": 30}, {"ph": "B", "ts": 20}, *events)
    assert [label for label, *_ in rows(trace)] == ["1", "3", "5", "9", "a"]


def test_asynchronous_events_match_by_identity(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        {"ph": "b", "ts": 0, "id": "x", "name": "first"},
        {"ph": "b", "ts": 1, "id": 7, "name": "second"},
        {"ph": "n", "ts": 2, "id": 7, "name": "between"},
        {"ph": "e", "ts": 3, "id": "x"},
        {"ph": "e", "ts": 4, "id": 7},
        {"ph": "S", "ts": 5, "id": 8, "name": "old"},
        {"ph": "F", "ts": 6, "id": 8},
        {"ph": "b", "ts": 7, "id2": {"local": 1}, "name": "mine"},
        {"ph": "e", "ts": 8, "id2": {"local": 1}, "pid": 99},
    )
    assert rows(trace) == [
        ("first", 0, 3000, 0), ("second", 1000, 3000, 1), ("old", 5000, 1000, 0),
        ("mine", 7000, 1000, 0),
    ]  # fmt: skip
    assert {thread.name for thread in trace.threads} == {"2, asynchronous", ""}
    assert trace.problems == ("1 event of phase E, e or F without a begin, left out",)
    assert [trace.labels[label] for label in trace.instants.label] == ["between"]


def test_counters_are_series(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        {"ph": "C", "ts": 5, "name": "memory", "args": {"used": 1, "free": 2.5}},
        {"ph": "C", "ts": 6, "name": "memory", "args": {"used": 3, "free": "none"}},
    )
    assert [(s.name, s.time_ns.tolist(), s.value.tolist()) for s in trace.series] == [
        ("used", [0, 1000], [1, 3]), ("free", [0], [2.5]),
    ]  # fmt: skip
    assert trace.problems == ("1 event of a counter with a value that is no number, left out",)


def test_names_of_processes_and_threads_are_told(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        {"ph": "M", "name": "process_name", "args": {"name": "python"}},
        {"ph": "M", "name": "thread_name", "args": {"name": "main <1>"}},
        {"ph": "i", "ts": 1, "s": "t"},
    )
    assert [(p.pid, p.name, [t.name for t in p.threads]) for p in trace.processes] == [
        (1, "python", ["main <1>"])
    ]


def test_what_is_not_shown_is_counted(tmp_path: Path) -> None:
    events = [{"ph": ph, "ts": 1, "id": 1} for ph in ("t", "f", "O", "?", 5, ["X"])]
    trace = trace_of(tmp_path, {"ph": "X", "ts": 1, "dur": -3}, {"ph": "X", "ts": "soon"}, *events)
    assert sorted(trace.problems) == [
        "1 event of a flow without a start left out",
        "1 event of negative duration, shown with none",
        "1 event of phase O, object, not shown",
        "1 event of the unknown phase '?', left out",
        "1 event without a duration that can be, shown with none",
        "1 event without a time that can be, left out",
        "2 events without a phase, left out",
    ]
    assert rows(trace) == [("a", 0, 0, 0)]


def test_an_array_is_as_good_as_an_object_and_may_lack_its_end(tmp_path: Path) -> None:
    path = tmp_path / "array"
    event = b'{"ph":"X","ts":%d,"dur":1,"pid":1,"tid":1,"name":"a"}'
    path.write_bytes(b"\xef\xbb\xbf\n[" + event % 1 + b",\n" + event % 5 + b"]\n")
    assert (len(rows(openTrace(path))), openTrace(path).is_finished) == (2, True)
    path.write_bytes(b"[" + event % 1 + b",\n" + event % 5 + b",\n")
    assert (len(rows(openTrace(path))), openTrace(path).is_finished) == (2, False)
    assert openTrace(path).problems == ()
    path.write_bytes(b"[" + event % 1 + b",\n" + (event % 5)[:30])
    trace = openTrace(path)
    assert len(rows(trace)) == 1
    assert trace.problems == ("its last event is cut off: 30 bytes were left out",)


def test_a_packed_file_opens_and_one_that_is_cut_off_too(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    events = [
        {"ph": "X", "ts": n, "dur": 1, "pid": 1, "tid": 1, "name": str(n)} for n in range(900)
    ]
    packed = gzip.compress(json.dumps({"traceEvents": events}).encode())
    path.write_bytes(packed)
    assert len(rows(openTrace(path))) == 900
    path.write_bytes(packed[: len(packed) // 2])
    trace = openTrace(path)
    assert 100 < len(rows(trace)) < 900
    assert trace.problems[0] == "its packed text is cut off or damaged"


def test_a_packed_file_that_never_ends_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_pieces, "PACKED_LEAST", 1 << 20)
    path, event = tmp_path / "bomb.gz", b'{"ph":"s","ts":1},'
    pack = zlib.compressobj(1, wbits=31)
    path.write_bytes(pack.compress(b"[" + event * 200_000) + pack.flush())
    with pytest.raises(DamagedFileError, match="bomb.gz: unpacks to more than 1 MB; unpack it"):
        openTrace(path)


def test_a_profile_of_pytorch_opens(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 2000.5,
         "dur": 10.25, "args": {"External id": 1, "Input Dims": [[2, 2], [2, 2]]}},
        {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 3, "ts": 2005, "dur": 2},
        {"ph": "s", "id": 1, "pid": 7, "tid": 7, "ts": 2001, "cat": "ac2g", "name": "ac2g"},
        {"ph": "f", "id": 1, "pid": 0, "tid": 3, "ts": 2005, "cat": "ac2g", "name": "ac2g",
         "bp": "e"},
        {"ph": "X", "cat": "Trace", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 2000,
         "name": "PyTorch Profiler (0)", "dur": 20},
        {"name": "process_name", "ph": "M", "ts": 2000, "pid": 7, "tid": 0,
         "args": {"name": "python"}},
        {"name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": 2020},
        schemaVersion=1, deviceProperties=[{"id": 0, "name": "x"}], traceName="a.json",
        baseTimeNanoseconds=1_700_000_000_000_000_000,
    )  # fmt: skip
    assert [row[0] for row in rows(trace)] == ["aten::mm", "gemm", "PyTorch Profiler (0)"]
    flows = trace.flows
    assert (flows.time_ns.tolist(), flows.to_time_ns.tolist()) == ([1000], [5000])
    assert trace.anchor.wall_ns == 1_700_000_000_002_000_000
    assert {(p.pid, p.name) for p in trace.processes} >= {(7, "python"), (-1, "Spans")}
    assert trace.problems == ()


def test_a_trace_of_viztracer_opens(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        {"ph": "M", "pid": 5, "tid": 6, "name": "thread_name", "args": {"name": "MainThread"}},
        {"ph": "X", "pid": 5, "tid": 6, "ts": 11.5, "dur": 1.2, "name": "f (a.py:1)", "cat": "FEE"},
        {"ph": "X", "pid": 5, "tid": 6, "ts": 10.1, "dur": 9.9, "name": "<module> (a.py:3)",
         "cat": "FEE", "args": {"func_args": {"x": "\\\"}],{"}}},
        viztracer_metadata={"version": "1.0", "overflow": False},
        file_info={"files": {"a.py": ["def f():\n  return '}]'\n", 2]}, "functions": {}},
    )  # fmt: skip
    assert rows(trace) == [("<module> (a.py:3)", 0, 9900, 0), ("f (a.py:1)", 1400, 1200, 1)]


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "é\u2028\U0001f600", "\0\x1b[31m",
                                  "x" * (1 << 20), "", '"},{"ph":"', "\\", "\\\\"])  # fmt: skip
def test_a_label_may_be_any_text(tmp_path: Path, name: str) -> None:
    trace = trace_of(tmp_path, *({"ph": "X", "ts": ts, "dur": 1, "name": name} for ts in (1, 5)))
    assert [row[0] for row in rows(trace)] == [name, name]
    assert trace.problems == ()
    assert "<script>" not in trace.threads[0].events._repr_html_()


def test_halves_of_characters_and_numbers_that_are_none_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    path.write_bytes(
        b'[{"ph":"X","ts":1,"dur":2,"name":"\\ud800","args":{"x":NaN}},'
        b'{"ph":"X","ts":3,"dur":1,"name":"\xff\xfe"},{"ph":,},7,{"ph":"X","ts":5,"dur":1,'
        b'"name":"whole"}]'
    )
    trace = openTrace(path)
    assert [row[0] for row in rows(trace)] == ["\\ud800", "\\udcff\\udcfe"]
    assert trace.problems == ("2 events without a JSON object, left out",)


@pytest.mark.parametrize("text", [b"{}", b'{"a":{"traceEvents":[{}]}}', b'{"traceEvents":7}',
                                  b'{"a":"\\"traceEvents\\":[', b"{" * 100])  # fmt: skip
def test_an_object_without_the_array_is_no_trace(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "no.json").write_bytes(text)
    with pytest.raises(UnknownFormatError, match="no array 'traceEvents'; an array, or an object"):
        openTrace(tmp_path / "no.json")


def test_pieces_of_any_size_tell_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = [{"ph": "X", "ts": n, "dur": 1, "name": '\\"]}' * (n % 5), "args": {"n": [[n]]}}
              for n in range(50)]  # fmt: skip
    whole = trace_of(tmp_path, *events, before={"traceEvents": [1]})
    for size in (1, 7, 100):
        monkeypatch.setattr(json_pieces, "READ", size)
        parts = openTrace(whole.path)
        assert rows(parts) == rows(whole)
        assert parts.frames.events()["metadata"].tolist() == (
            whole.frames.events()["metadata"].tolist()
        )
        assert parts.problems == ()


def test_an_event_without_end_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_pieces, "ELEMENT_LIMIT", 1000)
    monkeypatch.setattr(json_pieces, "READ", 100)
    path = tmp_path / "endless.json"
    path.write_bytes(b'[{"ph":"X","ts":1,"dur":1,"name":"a"},' + b"[" * 10_000)
    assert openTrace(path).problems == (
        "an event does not end: it and what stands behind it were left out",
    )


def test_what_was_exported_opens_with_the_same_events(tmp_path: Path) -> None:
    from pva.formats.traces import chrome_trace
    from tests.fuzz.seeds import write_trace

    write_trace(tmp_path / "host.pvti")
    first = openTrace(tmp_path / "host.pvti")
    with (tmp_path / "host.json").open("wb") as out:
        chrome_trace.write(first, out)
    second = openTrace(tmp_path / "host.json")
    columns = ["thread", "begin_ns", "duration_ns", "self_ns", "label", "channel"]
    for name in ("events", "instants"):
        one, two = (getattr(trace.frames, name)() for trace in (first, second))
        chosen = columns if name == "events" else list(one.columns)
        assert one[chosen].astype(str).equals(two[chosen].astype(str)), name
    assert second.anchor.wall_ns == first.anchor.wall_ns
    assert second.frames.events()["metadata"][1] == '{"epoch":3}'
    assert (second.is_finished, second.problems) == (False, ())


@pytest.mark.parametrize(
    "event",
    [
        {"ph": "B", "ts": 1},
        {"ph": "i", "ts": 1, "args": {"a": 1}},
        {"ph": "C", "ts": 1, "args": {"a": 1, "b": 2}},
        {"ph": "X", "ts": 1, "name": "long " * 99},
    ],
    ids=lambda event: event["ph"],
)
def test_more_events_than_fit_are_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, event: dict[str, Any]
) -> None:
    monkeypatch.setattr(memory_limit, "LEAST", memory_limit.ASIDE)
    monkeypatch.setattr(memory_limit, "TIMES_THE_FILE", 1)
    with pytest.raises(DamagedFileError, match=r"json: traceEvents.*: more values than fit into"):
        trace_of(tmp_path, event)


def test_an_array_of_what_is_no_event_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chrome_events, "UNKNOWN_LIMIT", 100)
    (tmp_path / "lists.json").write_text(json.dumps([[] for _ in range(101)]))
    with pytest.raises(DamagedFileError, match="more than 100 elements that are no objects"):
        openTrace(tmp_path / "lists.json")


def test_many_events_of_every_kind_are_as_few_are(tmp_path: Path) -> None:
    kinds: list[dict[str, Any]] = [
        {"ph": "X", "ts": 5, "dur": 1, "args": {"n": 1}},
        {"ph": "B", "ts": 1, "name": "outer"},
        {"ph": "E", "ts": 9, "args": {"n": 2}},
        {"ph": "i", "ts": 2},
        {"ph": "i", "ts": 3, "args": {"n": 3}},
    ]
    events = [kind | {"tid": tid} for tid in range(300) for kind in kinds]
    trace = trace_of(tmp_path, *events)
    assert rows(trace) == 300 * [("outer", 0, 8000, 0), ("a", 4000, 1000, 1)]
    told = trace.frames.events()["metadata"]
    assert told.tolist() == 300 * ['{"n": 2}', '{"n": 1}']
    assert trace.frames.instants()["metadata"].tolist().count('{"n": 3}') == 300
