"""Real processes: options from outside, forks, kills, full and unwritable disks."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pva.trace import Trace, openTrace

ROOT = Path(__file__).parents[2]
HEAD = """
import os, sys, threading, time
import pvti
channel = pvti.createTraceChannel("real")

def wait_for_commits(count):
    import sqlite3
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        path = f"file:{pvti.getCurrentTraceFilename()}?mode=ro"
        reader = sqlite3.connect(path, uri=True, timeout=30)
        found = reader.execute("SELECT count(*) FROM event_chunks").fetchone()[0]
        reader.close()
        if found >= count: return
        time.sleep(0.02)
"""


def environment(options: str | None) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k != "PVTI_OPTIONS"}
    kept |= {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}
    return kept if options is None else {**kept, "PVTI_OPTIONS": options}


def start(body: str, folder: Path, options: str | None = "{}") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HEAD + body],
        cwd=folder,
        env=environment(options),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(body: str, folder: Path, options: str | None = "{}") -> tuple[str, str]:
    process = start(body, folder, options)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out, err


def labels(trace: Trace) -> list[str]:
    return [trace.labels[i] for thread in trace.threads for i in thread.columns.label]


def test_unset_leaves_no_file_and_no_thread(tmp_path: Path) -> None:
    body = "with pvti.Tracepoint(channel, 'x'): print(threading.active_count())"
    assert run(body, tmp_path, None)[0] == "1\n"
    assert list(tmp_path.iterdir()) == []


def test_importing_opens_nothing_even_when_asked_to_record(tmp_path: Path) -> None:
    body = "print(threading.active_count(), 'sqlite3' in sys.modules, 'numpy' in sys.modules)"
    assert run(body, tmp_path)[0] == "1 False False\n"
    assert list(tmp_path.iterdir()) == []


def test_the_file_is_named_after_time_zone_and_process(tmp_path: Path) -> None:
    body = "with pvti.Tracepoint(channel, 'x'): print(os.getpid(), pvti.getCurrentTraceFilename())"
    pid, name = run(body, tmp_path, "not JSON")[0].split()
    assert re.fullmatch(r"\w{3}_\w{3}_\w{2}_\d\d:\d\d:\d\d_\d{4}_[\w+-]+_" + pid + r"\.pvti", name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    trace = openTrace(tmp_path)
    assert (labels(trace), trace.processes[0].pid, trace.is_finished) == (["x"], int(pid), True)
    trace.close()


def test_directory_and_channels_are_obeyed(tmp_path: Path) -> None:
    body = """
other = pvti.createTraceChannel("other")
with pvti.Tracepoint(channel, "in"), pvti.Tracepoint(other, "out"): pass
print(pvti.listTraceChannel()[-2:])
"""
    options = '{"directory": "a/b", "channels": ["real"]}'
    assert run(body, tmp_path, options)[0] == "[['real', True], ['other', False]]\n"
    trace = openTrace(tmp_path / "a" / "b")
    assert labels(trace) == ["in"]
    trace.close()


def test_the_duration_ends_the_trace(tmp_path: Path) -> None:
    body = """
with pvti.Tracepoint(channel, "early"): pass
deadline = time.monotonic() + 120
while channel.begins is not None and time.monotonic() < deadline: time.sleep(0.02)
with pvti.Tracepoint(channel, "late"): pass
"""
    run(body, tmp_path, '{"duration": 0.2}')
    trace = openTrace(tmp_path)
    assert (labels(trace), trace.is_finished) == (["early"], True)
    trace.close()


def test_a_killed_program_leaves_what_it_committed_and_its_open_spans(tmp_path: Path) -> None:
    body = """
with pvti.Tracepoint(channel, "outer"), pvti.Tracepoint(channel, "middle"):
    number = 0
    while True:
        with pvti.Tracepoint(channel, "inner"): time.sleep(0.001)
        number += 1
        print(number, flush=True)
"""
    process = start(body, tmp_path)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) == 1000:
            break
    time.sleep(0.5)
    process.send_signal(signal.SIGKILL)
    out, _ = process.communicate()
    ended = int((out.split() or [line])[-1])
    trace = openTrace(tmp_path)
    outer = trace.threads[0].events[0]
    middle = outer.children()[0]
    assert not trace.is_finished
    assert (outer.label, outer.isOpen, middle.label, middle.isOpen) == (
        "outer", True, "middle", True,
    )  # fmt: skip
    inner = [event for event in middle.children() if not event.isOpen]
    # Each takes a millisecond and more; commits are a tenth of a second apart, and up to a second
    # where other processes have most of the machine.
    assert ended - 1000 <= len(inner) <= ended + 1
    assert inner
    assert sum(event.duration for event in inner) <= middle.duration
    trace.close()


def test_a_trace_is_read_while_it_grows(tmp_path: Path) -> None:
    body = """
for number, word in enumerate(sys.stdin, 1):
    with pvti.Tracepoint(channel, word.strip()): pass
    wait_for_commits(number)
    print("committed", flush=True)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", HEAD + body],
        cwd=tmp_path,
        env=environment("{}"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    print("first", file=process.stdin, flush=True)
    process.stdout.readline()
    trace = openTrace(tmp_path)
    before = trace.threads[0]
    assert labels(trace) == ["first"]
    assert not trace.reload()
    print("second", file=process.stdin, flush=True)
    process.stdout.readline()
    assert trace.reload()
    assert labels(trace) == ["first", "second"]
    assert len(before.columns) == 1
    process.communicate()
    assert trace.reload()
    assert trace.is_finished
    trace.close()


def test_a_forked_child_writes_a_file_of_its_own(tmp_path: Path) -> None:
    body = """
with pvti.Tracepoint(channel, "before"): pass
time.sleep(0.3)
with pvti.Tracepoint(channel, "around"):
    child = os.fork()
    with pvti.Tracepoint(channel, "child" if child == 0 else "parent"): pass
    if child == 0:
        pvti.closeTrace()
        os._exit(0)
    os.waitpid(child, 0)
print(os.getpid(), child)
"""
    parent, child = run(body, tmp_path)[0].split()
    files = {path.stem.rsplit("_", 1)[1]: path for path in tmp_path.iterdir()}
    assert set(files) == {parent, child}
    traces = {pid: openTrace(path) for pid, path in files.items()}
    assert labels(traces[parent]) == ["before", "around", "parent"]
    assert labels(traces[child]) == ["child"]
    assert traces[child].anchor.clock_ns > traces[parent].anchor.clock_ns
    for trace in traces.values():
        trace.close()


def test_children_that_record_nothing_write_nothing(tmp_path: Path) -> None:
    body = """
with pvti.Tracepoint(channel, "parent"): pass
for _ in range(20):
    child = os.fork()
    if child == 0: os._exit(0)
    os.waitpid(child, 0)
"""
    run(body, tmp_path)
    trace = openTrace(tmp_path)
    assert (labels(trace), trace.is_finished) == (["parent"], True)
    trace.close()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_multiprocessing_write_files_of_their_own(tmp_path: Path, method: str) -> None:
    (tmp_path / "program.py").write_text(
        HEAD
        + f"""
import multiprocessing
def work(number):
    with pvti.Tracepoint(channel, f"work {{number}}"): pass
if __name__ == "__main__":
    with pvti.Tracepoint(channel, "parent"):
        context = multiprocessing.get_context({method!r})
        workers = [context.Process(target=work, args=(i,)) for i in range(2)]
        for worker in workers: worker.start()
        for worker in workers: worker.join()
"""
    )
    options = '{"directory": "traces"}'
    subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, env=environment(options), check=True
    )
    traces = [openTrace(path) for path in (tmp_path / "traces").iterdir()]
    assert sorted(labels(trace) for trace in traces) == [["parent"], ["work 0"], ["work 1"]]
    assert all(trace.is_finished for trace in traces)
    for trace in traces:
        trace.close()


def test_a_program_killed_before_its_first_commit_leaves_an_empty_trace(tmp_path: Path) -> None:
    body = """
pvti.Tracepoint.begin(channel, "first")
os.kill(os.getpid(), 9)
"""
    process = start(body, tmp_path)
    process.communicate()
    trace = openTrace(tmp_path)
    assert (trace.threads, trace.is_finished, trace.processes[0].name) == ((), False, "-c")
    trace.close()


def test_leaving_by_the_back_door_loses_a_commit_at_most(tmp_path: Path) -> None:
    body = """
with pvti.Tracepoint(channel, "early"): pass
wait_for_commits(1)
os._exit(0)
"""
    run(body, tmp_path)
    trace = openTrace(tmp_path)
    assert (labels(trace), trace.is_finished) == (["early"], False)
    trace.close()


def test_an_exception_in_a_thread_ends_its_spans(tmp_path: Path) -> None:
    body = """
def fail():
    with pvti.Tracepoint(channel, "failing"): raise RuntimeError("expected")
thread = threading.Thread(target=fail)
thread.start(); thread.join()
with pvti.Tracepoint(channel, "after"): pass
"""
    process = start(body, tmp_path)
    assert "expected" in process.communicate()[1]
    trace = openTrace(tmp_path)
    assert sorted(labels(trace)) == ["after", "failing"]
    trace.close()


def test_a_directory_that_cannot_be_made_is_one_warning(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    body = """
for _ in range(3):
    with pvti.Tracepoint(channel, "x"): pass
print("went on")
"""
    out, err = run(body, tmp_path, '{"directory": "taken"}')
    assert out == "went on\n"
    assert err.count("\n") == 1
    assert err.startswith("pvti: tracing stopped: ")


def test_a_full_disk_stops_the_trace_and_not_the_program(tmp_path: Path) -> None:
    body = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
with pvti.Tracepoint(channel, "first"): pass
wait_for_commits(1)
deadline = time.monotonic() + 120
while channel.begins is not None and time.monotonic() < deadline:
    with pvti.Tracepoint(channel, "many"): pass
print("went on")
"""
    out, err = run(body, tmp_path)
    assert out == "went on\n"
    assert err.count("pvti: tracing stopped") == 1
    trace = openTrace(tmp_path)
    assert labels(trace)[0] == "first"
    trace.close()


def test_threads_that_come_and_go_lose_nothing(tmp_path: Path) -> None:
    body = """
def work():
    with pvti.Tracepoint(channel, "work"): pass
for number in range(300):
    thread = threading.Thread(target=work, name="worker")
    thread.start(); thread.join()
    if number % 100 == 99: wait_for_commits(number // 100 + 1)
"""
    run(body, tmp_path)
    trace = openTrace(tmp_path)
    assert labels(trace) == ["work"] * 300
    assert len(trace.threads) < 10
    trace.close()


def test_a_reader_holds_up_the_file_and_not_the_program(tmp_path: Path) -> None:
    body = """
import sqlite3
with pvti.Tracepoint(channel, "first"): pass
wait_for_commits(1)
reader = sqlite3.connect(pvti.getCurrentTraceFilename(), isolation_level=None)
reader.execute("BEGIN"); reader.execute("SELECT * FROM labels").fetchall()
for _ in range(15):
    with pvti.Tracepoint(channel, "held up"): time.sleep(0.1)
reader.execute("COMMIT"); reader.close()
with pvti.Tracepoint(channel, "last"): pass
"""
    assert run(body, tmp_path)[1] == ""
    trace = openTrace(tmp_path)
    assert labels(trace) == ["first", *["held up"] * 15, "last"]
    trace.close()
