"""Measure how long the clicks of eight users take, who look at three large reports at once.

Starts `tilescope serve` on three reports of `benchmarks.large_report`. Each user opens pages and
chooses tiles, steps, tabs and filters by chance, and pauses between two clicks (a second in the
middle, exponential). A click is what a browser asks for: the page, then all of its panels, plots,
tables and timelines at once; it takes until the last answer is there. The last line says which part
of the server's processor time was the system's. The same seed gives the same clicks. `--keep DIR`
keeps the reports, `--clicks FILE` writes one line a click. Linux.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from benchmarks.dashboard_speed import REPORTS, held, reports, row, served

USERS, SECONDS, PAUSE = 8, 180.0, 1.0
CONNECTIONS = 6  # of a browser to one host
MEGABYTES_EVERY = 1.0  # seconds between two looks at the memory of the server
VIEW = re.compile(rb'"view":"([a-z-]+)"')
TABLE = re.compile(rb'"id":"([a-z-]+)"')
LATER = b"broken-laws-later"
TIMELINE = re.compile(rb'"id":"(device|host|together)-timeline"')
# Pages by how often they are opened, with what is chosen there: names of values in `chosen`.
PAGES: dict[str, tuple[str, ...]] = {
    "summary": ("",),
    "insights": ("", "of=ipu-{ipu}", "tab=vertices"),
    "memory": ("", "tile={tile}", "tile={tile}&tab=variables", "tab=compute-sets", "tab=vertices",
               "graph=map", "breakdown=region", "breakdown=liveness", "range={range}",
               "tab=variables&filter=name~{digit}"),
    "liveness": ("", "step={step}", "ipu={ipu}", "tab=steps"),
    "programs": ("", "program={program}", "level=3", "find={digit}"),
    "operations": ("", "filter=operation~{digit}", "layer=poplibs"),
    "graph": ("", "compute-set={set}", "tile={tile}", "tab=variables"),
    "execution": ("", "step={step}", "filter=name~{digit}"),
    "compare": ("against={other}", "against={other}&tab=operations",
                "against={other}&by=variables"),
}  # fmt: skip


@dataclass
class Server:
    """Where the dashboard is, and by what callback each view of it is filled."""

    host: str
    outputs: dict[str, dict[str, Any]]
    router: dict[str, Any]
    tables: frozenset[str]
    later: str  # the output of what is asked for after a page was shown


@dataclass
class User:
    """One browser: its connections, the chances of its clicks, and how long each took."""

    server: Server
    chance: random.Random
    took: list[tuple[float, str]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    own: threading.local = field(default_factory=threading.local)

    def ask(self, method: str, path: str, body: object = None) -> bytes:
        """Send a request on a connection that is kept, and return the answer."""
        if not hasattr(self.own, "link"):
            self.own.link = http.client.HTTPConnection(self.server.host, timeout=300)
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": "application/json"} if data else {}
        self.own.link.request(method, path, data, headers)
        answer = self.own.link.getresponse()
        text: bytes = answer.read()
        if answer.status not in (200, 204):
            self.wrong.append(f"{answer.status} {method} {path} {data} {text[:200]!r}")
        return text

    def click(self, pool: ThreadPoolExecutor) -> None:
        """Open a page by chance, with all that it shows."""
        path, search = self.link()
        begin = time.perf_counter()
        page = self.ask("POST", "/_dash-update-component", _routed(self.server, path, search))
        waiting = [page]
        seen: set[str] = set()
        while waiting:
            asked = [job for text in waiting for job in self.parts(text, path, search, seen)]
            waiting = list(pool.map(lambda job: self.ask(*job), asked))
            if any(LATER in text for text in waiting):
                threading.Timer(1.5, self.ask, _laws(self.server, path, search)).start()
        self.took.append((time.perf_counter() - begin, f"{path}{search}"))

    def link(self) -> tuple[str, str]:
        """Return the path and the search of a page, by chance."""
        page = self.chance.choice(list(PAGES))
        report, other = self.chance.sample(REPORTS, 2)
        begin = self.chance.randrange(5000)
        values = {
            "tile": self.chance.randrange(5888), "ipu": self.chance.randrange(4),
            "step": self.chance.randrange(3500), "program": self.chance.randrange(20000),
            "set": self.chance.randrange(500), "digit": self.chance.randrange(100),
            "other": other, "range": f"{begin}-{begin + self.chance.randrange(10, 800)}",
        }  # fmt: skip
        chosen = self.chance.choice(PAGES[page]).format(**values)
        return f"/{page}", f"?report={report}" + (f"&{chosen}" if chosen else "")

    def parts(self, text: bytes, path: str, search: str, seen: set[str]) -> Iterator[Any]:
        """List the requests for the parts that an answer makes room for, each once."""
        for name in (match.decode() for match in VIEW.findall(text)):
            if name in self.server.outputs and name not in seen:
                seen.add(name)
                yield "POST", "/_dash-update-component", _filled(self.server, name, path, search)
        for name in (match.decode() for match in TABLE.findall(text)):
            if name in self.server.tables and name not in seen:
                seen.add(name)
                asked = {"search": search, "startRow": 0, "endRow": 100, "sortModel": []}
                yield "POST", f"/rows/{name}", asked
        for name in (match.decode() for match in TIMELINE.findall(text)):
            if name not in seen:
                seen.add(name)
                yield "GET", f"/timeline/{name}/layout{search}", None
                yield "GET", f"/timeline/{name}{search}&pixels=1100&rows=0-40", None

    def work(self, until: float, pause: float) -> None:
        """Click and pause until a moment of the clock."""
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            while time.perf_counter() < until:
                self.click(pool)
                time.sleep(self.chance.expovariate(1 / pause) if pause else 0)


def _routed(server: Server, path: str, search: str) -> dict[str, Any]:
    """Return the request of a page as Dash sends it."""
    router = server.router
    return {
        "output": router["output"],
        "outputs": _outputs(router["output"]),
        "inputs": [{"id": one["id"], "property": one["property"], "value": None}
                   for one in router["inputs"]],
        "state": [{"id": "address", "property": "pathname", "value": path},
                  {"id": "address", "property": "search", "value": search},
                  {"id": "shown", "property": "data", "value": None},
                  {"id": "kept", "property": "data", "value": {}},
                  {"id": "report-choice", "property": "data", "value": list(REPORTS)}],
        "changedPropIds": ["place.data"],
    }  # fmt: skip


def _filled(server: Server, name: str, path: str, search: str) -> dict[str, Any]:
    """Return the request of a panel or a plot."""
    entry = server.outputs[name]
    view = {"path": path, "search": search, "theme": "light", "stamp": ""}
    return {
        "output": entry["output"],
        "outputs": _outputs(entry["output"]),
        "inputs": [{"id": {"view": name}, "property": "data", "value": view}],
        "state": [],
        "changedPropIds": [f'{{"view":"{name}"}}.data'],
    }


def _laws(server: Server, path: str, search: str) -> tuple[str, str, dict[str, Any]]:
    """Return the request that a page sends a while after it was shown."""
    asked = _filled(server, "broken-laws", path, search)
    later = {"id": LATER.decode(), "property": "n_intervals", "value": 1}
    output = server.later
    return "POST", "/_dash-update-component", {
        "output": output,
        "outputs": _outputs(output),
        "inputs": [later],
        "state": asked["inputs"],
        "changedPropIds": [f"{LATER.decode()}.n_intervals"],
    }  # fmt: skip


def _outputs(text: str) -> Any:
    """Return the outputs of a callback, taken from their joined name."""
    names = [name.rpartition(".") for name in text.strip(".").split("...")]
    found = [{"id": name, "property": property_} for name, _, property_ in names]
    return found if text.startswith("..") else found[0]


def dashboard(url: str) -> Server:
    """Ask a server for its callbacks."""
    host = urlsplit(url).netloc
    link = http.client.HTTPConnection(host, timeout=300)
    link.request("GET", "/_dash-dependencies")
    entries = [e for e in json.load(link.getresponse()) if not e.get("clientside_function")]
    outputs = {}
    for entry in entries:
        found = VIEW.search(entry["inputs"][0]["id"].encode())
        if found:
            outputs[found[1].decode()] = entry
    router = next(entry for entry in entries if "page-above.children" in entry["output"])
    later = next(entry["output"] for entry in entries if entry["inputs"][0]["id"] == LATER.decode())
    return Server(host, outputs, router, _tables(), later)


def _tables() -> frozenset[str]:
    """Name the tables whose rows are asked for."""
    from dashboard.app import create_app
    from dashboard.tables import served as serving

    return frozenset(serving(create_app([]).server))


def processor(process: int) -> tuple[float, float]:
    """Return the seconds of a process in its own code and in the system's, its children too."""
    ticks = os.sysconf("SC_CLK_TCK")
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return int(fields[11]) / ticks, int(fields[12]) / ticks


def measure(folder: Path, seconds: float, users: int, pause: float, seed: int, clicks: Path | None,
            ) -> Iterator[str]:  # fmt: skip
    """Run the users; return the lines of the table."""
    with served(reports(folder)) as (process, url):
        server = dashboard(url)
        crowd = [User(server, random.Random(seed + number)) for number in range(users)]
        begin = time.perf_counter()
        threads = [threading.Thread(target=user.work, args=(begin + seconds, pause))
                   for user in crowd]  # fmt: skip
        for thread in threads:
            thread.start()
        memory = 0.0
        while any(thread.is_alive() for thread in threads):
            memory = max(memory, held(process.pid))
            time.sleep(MEGABYTES_EVERY)
        user_time, system_time = processor(process.pid)
    took = [one for user in crowd for one in user.took]
    times = np.array([seconds for seconds, _ in took]) * 1000
    wrong = [text for user in crowd for text in user.wrong]
    if clicks:
        clicks.write_text("".join(f"{t:.3f} {link}\n" for t, link in sorted(took)))
    yield "| figure | measured | goal | |\n| --- | ---: | ---: | --- |"
    yield row("click, half of all within", float(np.quantile(times, 0.5)), 200)
    yield row("click, 99 of 100 within", float(np.quantile(times, 0.99)), 1500)
    yield row("most memory of the server", memory, 700, "MB")
    yield row("answers that are not 200", len(wrong), 0, "")
    yield (
        f"\n{len(took):,} clicks; 90 of 100 within {np.quantile(times, 0.9):,.0f} ms, the slowest "
        f"{times.max():,.0f} ms ({max(took)[1]}). Processor: {user_time:,.0f} s of the server, "
        f"{system_time:,.0f} s of the system for it."
    )
    yield from wrong[:5]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, help="a directory that keeps the reports")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--users", type=int, default=USERS)
    parser.add_argument("--pause", type=float, default=PAUSE, help="seconds between two clicks")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--clicks", type=Path, help="a file for a line a click")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        for line in measure(asked.keep or Path(temporary), asked.seconds, asked.users, asked.pause,
                            asked.seed, asked.clicks):  # fmt: skip
            print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
