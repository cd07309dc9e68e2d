"""Whatever happens to the program or to its file: what was committed is there, and it goes on."""

from __future__ import annotations

import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from test_pvti_processes import HEAD, environment, labels, run, start

from pva.trace import Trace, openTrace

INTERVAL = """
def spin(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until: pass
"""


def opened(folder: Path) -> Trace:
    trace = openTrace(folder)
    for thread in trace.threads:
        assert (thread.columns.duration_ns >= 0).all()
    return trace


def commits(folder: Path) -> int:
    """Count the chunks that are in the file of the only trace."""
    (path,) = folder.glob("*.pvti")
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as reader:
        count: int = reader.execute("SELECT count(*) FROM event_chunks").fetchone()[0]
    return count


def test_a_program_killed_while_it_computes_has_lost_a_tenth_of_a_second(tmp_path: Path) -> None:
    body = (
        INTERVAL
        + """
print(pvti.getCurrentTraceFilename(), flush=True)
with pvti.Tracepoint(channel, "outer"):
    while True:
        with pvti.Tracepoint(channel, "step"): spin(0.002)
        print(time.perf_counter_ns(), flush=True)
"""
    )
    process = start(body, tmp_path)
    assert process.stdout is not None
    process.stdout.readline()
    began = int(process.stdout.readline())
    for line in process.stdout:
        if int(line) - began > 60e9 or (int(line) - began > 1.5e9 and commits(tmp_path) >= 5):
            break
    process.send_signal(signal.SIGKILL)
    last = int((process.communicate()[0].split() or [line])[-1])
    trace = opened(tmp_path)
    anchor = trace.anchor.clock_ns
    (outer,) = trace.threads[0].events
    ends = [anchor + e for e in trace.threads[0].columns.end_ns[~trace.threads[0].columns.is_open]]
    assert (outer.label, outer.isOpen) == ("outer", True)
    # The other processes of the machine take part of the time: then commits are further apart.
    assert last - max(ends) < max(1e9, (last - began) / 2)
    trace.close()


def test_a_thread_that_gives_the_writer_no_turn_commits_by_itself(tmp_path: Path) -> None:
    body = """
from pvti import recorder
recorder.Recorder._start_writer = lambda self: None
with pvti.Tracepoint(channel, "outer"):
    until = time.monotonic() + 1
    while time.monotonic() < until:
        with pvti.Tracepoint(channel, "inner"): time.sleep(0.001)
    os._exit(0)
"""
    run(body, tmp_path)
    trace = opened(tmp_path)
    (outer,) = trace.threads[0].events
    assert (outer.label, outer.isOpen) == ("outer", True)
    assert outer.duration > 100_000
    trace.close()


def test_leaving_at_once_keeps_what_was_written_before(tmp_path: Path) -> None:
    body = """
pvti.Tracepoint.begin(channel, "never ended")
for number in range(5):
    with pvti.Tracepoint(channel, f"event {number}"): pass
pvti.writeTrace()
with pvti.Tracepoint(channel, "too late"): pass
os._exit(0)
"""
    run(body, tmp_path)
    trace = opened(tmp_path)
    (outer,) = trace.threads[0].events
    assert (outer.label, outer.isOpen, trace.is_finished) == ("never ended", True, False)
    inner = [event.label for event in outer.children()]
    assert inner[:5] == [f"event {number}" for number in range(5)]
    trace.close()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_program_that_a_signal_ends_keeps_what_was_committed(tmp_path: Path) -> None:
    body = """
with pvti.Tracepoint(channel, "early"): pass
wait_for_commits(1)
os.kill(os.getpid(), 15)
"""
    process = start(body, tmp_path)
    process.communicate()
    assert process.returncode == -signal.SIGTERM
    trace = opened(tmp_path)
    assert labels(trace) == ["early"]
    trace.close()


def test_an_interrupted_program_ends_its_trace(tmp_path: Path) -> None:
    body = """
with pvti.Tracepoint(channel, "interrupted"): raise KeyboardInterrupt
"""
    process = start(body, tmp_path)
    process.communicate()
    trace = opened(tmp_path)
    assert (labels(trace), trace.is_finished) == (["interrupted"], True)
    trace.close()


def test_daemon_threads_that_still_record_are_shown_as_open(tmp_path: Path) -> None:
    body = """
def work():
    with pvti.Tracepoint(channel, "daemon"):
        ready.set()
        time.sleep(60)
ready = threading.Event()
threading.Thread(target=work, daemon=True, name="background").start()
ready.wait()
with pvti.Tracepoint(channel, "main"): pass
"""
    run(body, tmp_path)
    trace = opened(tmp_path)
    found = {t.name: (t.events[0].label, t.events[0].isOpen) for t in trace.threads}
    assert found == {"background": ("daemon", True), "MainThread": ("main", False)}
    trace.close()


def test_a_full_disk_stops_the_trace_and_not_the_program(tmp_path: Path) -> None:
    body = """
import resource
with pvti.Tracepoint(channel, "first"): pass
wait_for_commits(1)
size = os.path.getsize(pvti.getCurrentTraceFilename())
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20000, size + 20000))
deadline = time.monotonic() + 120
while channel.begins is not None and time.monotonic() < deadline:
    with pvti.Tracepoint(channel, "many"): pass
print("went on", channel.begins)
"""
    out, err = run(body, tmp_path)
    assert out == "went on None\n"
    assert err.count("\n") == 1
    assert err.startswith("pvti: tracing stopped: ")
    trace = opened(tmp_path)
    assert labels(trace)[0] == "first"
    trace.close()


def test_a_disk_that_is_full_from_the_start_leaves_no_file(tmp_path: Path) -> None:
    body = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
with pvti.Tracepoint(channel, "x"): pass
with pvti.Tracepoint(channel, "y"): pass
print("went on")
"""
    out, err = run(body, tmp_path)
    assert out == "went on\n"
    assert err.count("pvti: tracing stopped") == err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="/proc: no file can be made there")
def test_a_read_only_directory_is_one_warning(tmp_path: Path) -> None:
    body = """
for _ in range(3):
    with pvti.Tracepoint(channel, "x"): pass
print("went on")
"""
    out, err = run(body, tmp_path, '{"directory": "/proc/self"}')
    assert out == "went on\n"
    assert err.count("pvti: tracing stopped: /proc/self/") == err.count("\n") == 1
    assert err.count("/proc/self/") == 1 and re.search(r"\.pvti: [A-Z][a-z ]+$", err)


@pytest.mark.parametrize("change", ["os.unlink(path)", "os.replace(path, 'moved.pvti')"])
def test_a_file_that_is_taken_away_is_one_warning(tmp_path: Path, change: str) -> None:
    body = f"""
with pvti.Tracepoint(channel, "first"): pass
wait_for_commits(1)
path = pvti.getCurrentTraceFilename()
{change}
deadline = time.monotonic() + 120
while channel.begins is not None and time.monotonic() < deadline:
    with pvti.Tracepoint(channel, "more"): time.sleep(0.01)
print("went on")
"""
    out, err = run(body, tmp_path)
    assert out == "went on\n"
    assert err.count("pvti: tracing stopped") == err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["moved.pvti"] * ("replace" in change)


def test_a_directory_that_is_taken_away_is_one_warning(tmp_path: Path) -> None:
    body = """
import re
import shutil
with pvti.Tracepoint(channel, "first"): pass
wait_for_commits(1)
shutil.rmtree("traces")
with pvti.Tracepoint(channel, "second"): pass
print("went on")
"""
    out, err = run(body, tmp_path, '{"directory": "traces"}')
    assert out == "went on\n"
    assert err.count("pvti: tracing stopped") == err.count("\n") == 1


@pytest.mark.parametrize("how", ["sys.stderr = None", "sys.stderr.close()"])
def test_a_closed_standard_error_breaks_nothing(tmp_path: Path, how: str) -> None:
    body = f"""
{how}
with pvti.Tracepoint(channel, "x"): pass
sys.stdout.write("went on"); sys.stdout.flush()
os._exit(0)
"""
    (tmp_path / "taken").write_text("a file")
    assert run(body, tmp_path, '{"directory": "taken"}')[0] == "went on"


def test_a_copy_of_a_file_that_is_being_written_opens(tmp_path: Path) -> None:
    body = """
for number in range(40):
    with pvti.Tracepoint(channel, "step"): time.sleep(0.02)
    if number == 20: print("half", flush=True)
"""
    process = start(body, tmp_path)
    assert process.stdout is not None
    process.stdout.readline()
    counts = []
    for number in range(5):
        copy = tmp_path / "copies" / f"{number}.pvti"
        copy.parent.mkdir(exist_ok=True)
        shutil.copyfile(next(tmp_path.glob("*.pvti")), copy)
        trace = openTrace(copy)
        counts.append(len(labels(trace)))
        trace.close()
        time.sleep(0.05)
    process.communicate()
    assert counts == sorted(counts)
    trace = opened(tmp_path)
    assert labels(trace) == ["step"] * 40
    trace.close()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_worker_that_is_killed_leaves_its_own_file(tmp_path: Path, method: str) -> None:
    (tmp_path / "program.py").write_text(
        HEAD
        + f"""
import multiprocessing
def work(queue):
    pvti.Tracepoint.begin(channel, "at work")
    pvti.writeTrace()
    queue.put("ready")
    time.sleep(60)
if __name__ == "__main__":
    context = multiprocessing.get_context({method!r})
    with pvti.Tracepoint(channel, "parent"):
        queue = context.Queue()
        worker = context.Process(target=work, args=(queue,))
        worker.start()
        queue.get()
        worker.kill()
        worker.join()
"""
    )
    options = '{"directory": "traces"}'
    subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, env=environment(options), check=True
    )
    traces = [openTrace(path) for path in (tmp_path / "traces").iterdir()]
    assert {tuple(labels(trace)): trace.is_finished for trace in traces} == {
        ("parent",): True, ("at work",): False,
    }  # fmt: skip
    for trace in traces:
        trace.close()


def test_pools_of_processes_write_a_file_each(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        HEAD
        + """
from concurrent.futures import ProcessPoolExecutor
import multiprocessing
def work(number):
    with pvti.Tracepoint(channel, "work"): time.sleep(0.02)
    return os.getpid()
if __name__ == "__main__":
    with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
        print(len(set(pool.map(work, range(20)))))
"""
    )
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path, env=environment('{"directory": "traces"}'), check=True, capture_output=True,
    )  # fmt: skip
    traces = [openTrace(path) for path in (tmp_path / "traces").iterdir()]
    assert len(traces) == int(done.stdout)
    assert sum(len(labels(trace)) for trace in traces) == 20
    for trace in traces:
        trace.close()


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_children_of_a_program_whose_threads_record_do_not_hang(tmp_path: Path) -> None:
    body = """
import warnings
warnings.simplefilter("ignore")  # to fork while threads run is what is tested
stop = threading.Event()
def work():
    while not stop.is_set():
        with pvti.Tracepoint(channel, "parent"): pass
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
for _ in range(5):
    child = os.fork()
    if child == 0:
        with pvti.Tracepoint(channel, "child"): pass
        pvti.closeTrace()
        os._exit(0)
    os.waitpid(child, 0)
stop.set()
for thread in threads: thread.join()
"""
    run(body, tmp_path)
    traces = [openTrace(path) for path in tmp_path.iterdir()]
    assert sorted(sorted(set(labels(trace))) for trace in traces) == [["child"]] * 5 + [["parent"]]
    assert all(trace.is_finished and trace.problems == () for trace in traces)
    for trace in traces:
        trace.close()


@pytest.mark.skipif(sys.platform == "win32", reason="a working directory cannot be removed")
def test_a_working_directory_that_is_gone_is_one_warning(tmp_path: Path) -> None:
    body = """
os.mkdir("gone"); os.chdir("gone"); os.rmdir("../gone")
pvti.startTrace()
with pvti.Tracepoint(channel, "x"): print("went on")
"""
    out, err = run(body, tmp_path, None)
    assert out == "went on\n"
    assert err.count("pvti: tracing stopped") == err.count("\n") == 1
