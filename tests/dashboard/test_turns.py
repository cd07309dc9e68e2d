"""Which of several requests that wait is answered next."""

from __future__ import annotations

import json
import queue
import threading
from typing import Any

import pytest

pytest.importorskip("dash")

from waitress.adjustments import Adjustments
from waitress.parser import HTTPRequestParser

from dashboard.app import create_app
from dashboard.requests.access import CALLBACKS
from dashboard.requests.turns import PAGE, Turns, dispatcher


class Channel:
    """A connection of waitress with one request, which notes when it is answered."""

    def __init__(self, name: str, output: str, answered: Any = None) -> None:
        body = json.dumps({"output": output, "inputs": ["x" * 20_000]}).encode()
        head = f"POST {CALLBACKS} HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        request = HTTPRequestParser(Adjustments())
        taken = request.received(head)
        request.received((head + body)[taken:])
        self.name, self.body, self.requests, self._answered = name, body, [request], answered

    def service(self) -> None:
        """Answer the request."""
        self._answered(self)


def page(name: str, answered: Any = None) -> Channel:
    return Channel(name, "..page-above.children...navigation.children..", answered)


def part(name: str, answered: Any = None) -> Channel:
    return Channel(name, "memory-plot.figure", answered)


def test_parts_come_before_pages_and_each_in_the_order_of_coming() -> None:
    turns = Turns()
    for channel in (page("a"), part("1"), page("b"), part("2")):
        turns.append(channel)
    taken = [turns.popleft().name]
    turns.append(part("3"))
    taken += [turns.popleft().name for _ in range(3)]
    turns.append(part("4"))
    taken += [turns.popleft().name for _ in range(2)]
    assert taken == ["1", "2", "3", "a", "4", "b"] and not turns


def test_what_was_looked_at_is_read_from_its_begin() -> None:
    turns = Turns()
    for channel in (page("a"), part("1")):
        turns.append(channel)
        assert channel.requests[0].get_body_stream().read() == channel.body


def test_threads_answer_in_turn() -> None:
    order: queue.Queue[str] = queue.Queue()
    free, made = threading.Event(), dispatcher(1)

    def answered(channel: Channel) -> None:
        free.wait(30)
        order.put(channel.name)

    for name, kind in (("first", page), ("later", page), ("part", part)):
        made.add_task(kind(name, answered))
        if name == "first":
            while made.queue:  # until the thread has it
                threading.Event().wait(0.001)
    free.set()
    assert [order.get(timeout=30) for _ in range(3)] == ["first", "part", "later"]
    made.shutdown()


def test_a_page_is_known_by_what_the_browser_sends_for_it() -> None:
    outputs = [output for output in create_app([]).callback_map if "page-above.children" in output]
    assert [output.encode().startswith(PAGE) for output in outputs] == [True]
