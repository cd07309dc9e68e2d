"""Tracks: one a thread, and one a running asyncio task, so that interleaved tasks stay apart.

A task keeps its track until it is done; the next task that needs one takes it over. So there are
as many tracks as tasks that run at once, not as many as tasks. A task that the program named has
a track of that name.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary, ref

from pvti import spans
from pvti.buffers import Buffers, Track
from pvti.spans import writable

NAMES_LIMIT = 1000  # tracks are never taken away: programs that name each task share the others

Register = Callable[[str, "list[Track]"], Track]


def thread_buffers(register: Register) -> Buffers:
    """Return the calling thread's track and those of its tasks, made when it first records.

    A signal handler or a finalizer may record while they are made: it makes them then, and what
    was begun around it is not used.
    """

    class ThreadBuffers(threading.local):
        def __getattr__(self, name: str) -> Any:
            attributes = self.__dict__
            siblings: list[Track] = attributes.setdefault("siblings", [])
            shown = attributes.get("name") or attributes.setdefault("name", _name_of_thread())
            if name == "track":
                return attributes.setdefault(
                    name, siblings[0] if siblings else register(shown, siblings)
                )
            if name == "tasks":
                task_tracks = TaskTracks(
                    self.track, lambda task: register(f"{shown}: {task}", siblings)
                )
                return attributes.setdefault(name, task_tracks)
            raise AttributeError(name)

        @property
        def current(self) -> Track:
            loop = spans.running_loop()
            track: Track = self.track if loop is None else self.tasks.of(loop)
            return track

    return ThreadBuffers()


def _name_of_thread() -> str:
    return writable(threading.current_thread().name)


class TaskTracks:
    """The tracks of the tasks of one thread."""

    def __init__(self, outside: Track, make: Callable[[str], Track]) -> None:
        self._outside = outside  # for what runs in no task
        self._make = make
        self._of_task: WeakKeyDictionary[Any, Track] = WeakKeyDictionary()
        self._free: dict[str, list[Track]] = {}  # by the name that their tasks have
        self._made: dict[str, int] = {}
        self._last: Callable[[], Any] = object  # a reference to the last task, and its track
        self._last_track = outside

    def of(self, loop: object) -> Track:
        """Return the track of the task that runs in this loop."""
        task = sys.modules["asyncio"].current_task(loop)
        if task is None:
            return self._outside
        if self._last() is not task:
            track = self._of_task.get(task)
            self._last_track = self._take(task) if track is None else track
            self._last = ref(task)
        return self._last_track

    def _take(self, task: Any) -> Track:
        name = _given_name(task)
        if name not in self._made and len(self._made) >= NAMES_LIMIT:
            name = ""
        free = self._free.setdefault(name, [])
        track = free.pop() if free else self._new(name)
        self._of_task[task] = track

        def set_free(_: object) -> None:
            if not track.spans():
                free.append(track)

        task.add_done_callback(set_free)
        return track

    def _new(self, name: str) -> Track:
        number = self._made[name] = self._made.get(name, 0) + 1
        shown = name or "task"
        return self._make(shown if name and number == 1 else f"{shown} {number}")


def _given_name(task: object) -> str:
    """Return the name the program gave a task; the empty text for the numbers asyncio gives."""
    get_name = getattr(task, "get_name", None)
    name = writable(get_name()) if get_name is not None else ""
    start, dash, number = name.partition("-")
    return "" if (start, dash) == ("Task", "-") and number.isdigit() else name
