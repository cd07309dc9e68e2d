"""The store opens what lies under the given paths, follows changes, and forgets."""

from __future__ import annotations

import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dashboard import store as module
from dashboard.store import Store
from pva.errors import NotFoundError, PvaError
from tests.builders import write_report


def test_report_is_opened_once(tmp_path: Path) -> None:
    store = Store([write_report(tmp_path / "small")])
    assert store.keys == ["small"]
    assert store.report() is store.report("small")


def test_changed_file_is_opened_again(tmp_path: Path) -> None:
    path = write_report(tmp_path / "small")
    store = Store([path])
    before, made = store.report(), store.derived("", "answer", lambda: object())
    os.utime(path / "profile.pop", ns=(1, 1))
    assert store.report() is not before
    assert store.derived("", "answer", lambda: object()) is not made


def test_oldest_is_let_go_when_too_many_are_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEPT_OPEN", 2)
    store = Store([write_report(tmp_path / name) for name in "abc"])
    first, third = store.report("a"), [store.report(key) for key in "bc"][-1]
    assert store.report("c") is third
    assert store.report("a") is not first


def test_large_reports_are_let_go_for_the_one_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store([write_report(tmp_path / name) for name in "ab"])
    monkeypatch.setattr(module, "KEPT_BYTES", store.size("a") + 1)
    first = store.report("a")
    assert store.report("a") is first
    second = store.report("b")
    assert store.report("b") is second
    assert store.report("a") is not first


def test_the_largest_columns_of_all_reports_are_let_go_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store([write_report(tmp_path / name) for name in "ab"])
    rooms = []
    for key in "ab":
        data = store.report(key).dataset
        rooms.append(data.room)
        for table in data.tables:
            data.table(table)
    half = rooms[1].held
    largest = max(room.largest for room in rooms)
    monkeypatch.setattr(module, "HELD_BYTES", half)
    store.answer("any", lambda: 1)
    assert 0 < sum(room.held for room in rooms) <= half
    assert all(0 < room.largest < largest for room in rooms)  # what is small is kept of each
    monkeypatch.setattr(module, "HELD_BYTES", 0)
    store.answer("another", lambda: 1)
    assert rooms[1].held == 0
    assert len(store.report("b").dataset.table("steps")["program"])  # is read again


def test_what_two_ask_for_at_once_is_made_once(tmp_path: Path) -> None:
    store, made = Store([write_report(tmp_path / "a")]), []

    def make() -> int:
        made.append(threading.get_ident())
        time.sleep(0.2)
        return 7

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: store.answer("slow", make), range(4)))
    assert (answers, len(made)) == ([7] * 4, 1)


def test_what_could_not_be_made_is_made_by_the_next_who_asks(tmp_path: Path) -> None:
    store, failures = Store([write_report(tmp_path / "a")]), [PvaError("x", "y", "z")]

    def make() -> int:
        if failures:
            raise failures.pop()
        return 7

    with pytest.raises(PvaError):
        store.answer("fails", make)
    assert store.answer("fails", make) == 7


def test_directory_of_reports_gives_each(tmp_path: Path) -> None:
    for name in ("training", "inference"):
        write_report(tmp_path / name)
    (tmp_path / "notes").mkdir()
    assert Store([tmp_path]).keys == ["inference", "training"]


def test_equal_names_are_numbered(tmp_path: Path) -> None:
    paths = [write_report(tmp_path / run / "report") for run in ("one", "two")]
    store = Store(paths)
    assert store.keys == ["report", "report-2"]
    assert [store.path(key) for key in store.keys] == paths


def test_unknown_key_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    store = Store([write_report(tmp_path / "small")])
    with pytest.raises(NotFoundError, match="report=/etc: not there; known: small"):
        store.report("/etc")


def test_no_path_at_all_says_how_to_start() -> None:
    with pytest.raises(NotFoundError, match="tilescope serve REPORT"):
        Store([]).report()


def test_path_that_is_not_there_is_reported_when_opened(tmp_path: Path) -> None:
    store = Store([tmp_path / "gone"])
    with pytest.raises(PvaError, match="gone"):
        store.report()


def test_report_without_trace_has_none(tmp_path: Path) -> None:
    assert Store([write_report(tmp_path / "small")]).trace() is None


def test_nested_reports_of_one_name_are_told_apart_by_their_place(tmp_path: Path) -> None:
    for run in ("one", "two"):
        write_report(tmp_path / run / "training")
    assert Store([tmp_path]).keys == ["one/training", "two/training"]
    store = Store([tmp_path / "one"])
    store.give(tmp_path / "two" / "training")  # links to the first one stay as they are
    assert store.keys == ["training", "training-2"]


def test_report_that_comes_later_is_found(tmp_path: Path) -> None:
    write_report(tmp_path / "a")
    store = Store([tmp_path])
    write_report(tmp_path / "runs" / "b")
    store.scan()
    assert store.keys == ["a", "b"]


def test_report_is_found_by_its_path_below_the_given_one(tmp_path: Path) -> None:
    path = write_report(tmp_path / "given" / "deep" / "deeper" / "small")
    store = Store([tmp_path / "given"])
    assert store.find("deep/deeper/small") == store.find(str(path)) == "small"


@pytest.mark.parametrize("text", ["", "../other", "/etc", "link", "small/../../other", "none"])
def test_path_that_leads_out_of_the_given_one_is_not_opened(tmp_path: Path, text: str) -> None:
    write_report(tmp_path / "other")
    write_report(tmp_path / "given" / "small")
    (tmp_path / "given" / "link").symlink_to(tmp_path / "other")
    store = Store([tmp_path / "given"])
    with pytest.raises(NotFoundError, match="no report there"):
        store.find(text)
    assert store.keys == ["small"]


def test_file_that_is_a_link_to_elsewhere_is_not_read(tmp_path: Path) -> None:
    other = write_report(tmp_path / "other")
    (tmp_path / "given" / "small").mkdir(parents=True)
    (tmp_path / "given" / "small" / "profile.pop").symlink_to(other / "profile.pop")
    store = Store([tmp_path / "given"])
    for ask in (store.report, store.stamp, store.trace):
        with pytest.raises(PvaError, match=r"profile.pop: a link out of the paths given"):
            ask("small")


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("", ["runs/", "small/"]),
        ("RU", ["runs/"]),
        ("runs/", ["runs/host.pvti", "runs/old/"]),
        ("small/p", ["small/profile.pop"]),
        ("../", []),
        ("../other", []),
        ("link", []),
        ("link/", []),
        ("runs/../../other/", []),
        ("/etc/", []),
        ("/", []),
    ],
)
def test_path_goes_on_inside_of_the_paths_given_alone(
    tmp_path: Path, typed: str, found: list[str]
) -> None:
    write_report(tmp_path / "other")
    given = tmp_path / "given"
    write_report(given / "small")
    (given / "runs" / "old").mkdir(parents=True)
    (given / "runs" / "host.pvti").write_bytes(b"")
    (given / "runs" / "notes.txt").write_bytes(b"")
    (given / ".hidden").mkdir()
    (given / "link").symlink_to(tmp_path / "other")
    assert Store([given]).completions(typed) == found
    inside = [f"{given}/{name}" for name in Store([given]).completions("")]
    assert Store([given]).completions(f"{given}/") == inside


def test_reports_below_a_directory_with_a_trace_are_found(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "host.pvti").write_bytes(b"")
    write_report(tmp_path / "run" / "training")
    assert Store([tmp_path / "run"]).keys == ["run", "training"]


def test_directory_that_may_not_be_looked_into_keeps_no_other_from_being_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report, closed = write_report(tmp_path / "report"), write_report(tmp_path / "closed")
    stat = os.stat

    def refused(path: Path, **options: bool) -> os.stat_result:
        """Look at a file as who may list a directory and not enter it."""
        if closed in Path(path).parents:
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **options)

    monkeypatch.setattr(os, "stat", refused)
    store = Store([tmp_path])
    assert store.keys == [report.name]
    assert store.completions("closed/run/") == []
    with pytest.raises(NotFoundError, match="no report there"):
        store.find("closed/profile.pop")


LINKED = (
    "profile.pop", "profile.cbor", "profile.json", "other.pop", "graph.cbor", "execution.json",
    "debug.cbor", "debug.json", "framework.json", "app.json", "other.pvti", "profile.pop-journal",
)  # fmt: skip


@pytest.mark.parametrize("name", LINKED)
def test_link_out_of_the_paths_is_not_followed_whatever_its_name(tmp_path: Path, name: str) -> None:
    served = write_report(tmp_path / "served" / "run")
    outside = tmp_path / "secret_place"
    outside.write_text('{"secret": 1}')
    (served / name).unlink(missing_ok=True)
    (served / name).symlink_to(outside)
    store = Store([tmp_path / "served"])
    for action in (store.report, store.report_anew, store.trace, store.stamp):
        with pytest.raises(PvaError) as caught:
            action(store.keys[0])
        assert "a link out of the paths given" in str(caught.value)
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", LINKED)
def test_link_within_the_paths_is_followed(tmp_path: Path, name: str) -> None:
    served = write_report(tmp_path / "served" / "run")
    if (served / name).exists():
        (served / name).rename(tmp_path / "served" / "kept")
        (served / name).symlink_to(tmp_path / "served" / "kept")
    assert Store([tmp_path / "served"]).report("run").compilation.target.numTiles == 10


def test_looping_link_costs_its_own_row_only(tmp_path: Path) -> None:
    write_report(tmp_path / "good")
    (tmp_path / "bad").mkdir()
    for name in ("profile.pop", "graph.json", "other.pvti"):
        (tmp_path / "bad" / name).symlink_to(tmp_path / "bad" / name)
    (tmp_path / "round").symlink_to(tmp_path / "round")
    store = Store([tmp_path, tmp_path / "round"])
    assert store.report("good").compilation.target.numTiles == 10
    assert store.completions("") == ["bad/", "good/"]
    with pytest.raises(NotFoundError):
        store.find("round")
    with pytest.raises(PvaError):
        store.report("round")


def test_a_report_that_is_written_after_the_start_opens_by_its_link(tmp_path: Path) -> None:
    write_report(tmp_path / "first")
    store = Store([tmp_path])
    write_report(tmp_path / "later")
    assert store.path("later") == tmp_path / "later"
    assert store.parts("first+later") == ("first", "later")


def test_a_report_that_was_deleted_leaves_the_list_and_comes_back_with_its_name(
    tmp_path: Path,
) -> None:
    given = write_report(tmp_path / "given")
    for name in ("gone", "kept"):
        write_report(tmp_path / "below" / name)
    store = Store([tmp_path / "below", given])
    for path in (tmp_path / "below" / "gone", given):
        shutil.rmtree(path)
    store.scan()
    assert store.keys == ["kept", "given"]  # what was given itself is told to be missing
    write_report(tmp_path / "below" / "gone")
    assert store.report("gone").path.name == "gone"


def test_a_report_that_was_deleted_is_not_named(tmp_path: Path) -> None:
    for name in ("gone", "kept"):
        write_report(tmp_path / name)
    store = Store([tmp_path])
    shutil.rmtree(tmp_path / "gone")
    with pytest.raises(NotFoundError, match="report=other: not there; known: kept$"):
        store.path("other")


def test_what_is_derived_is_kept_for_each_choice_of_runs(tmp_path: Path) -> None:
    store = Store([write_report(tmp_path / "small")])
    asked = ["steady"]
    store.count_runs(lambda: asked[0], lambda report, runs: report if runs == "all" else steady)
    steady = store.whole_report()
    made = [store.derived("", "figure", lambda: list(asked))]
    asked[0] = "all"
    assert not store.knows("", "figure")
    made.append(store.derived("", "figure", lambda: list(asked)))
    assert made == [["steady"], ["all"]]
