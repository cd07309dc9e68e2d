"""Hosts as `--host` names them, and the table of who runs where."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

from pva.formats.run_file import Topology
from simulator.graph.errors import PoplarError

MAX_HOSTS = 4096
_RANGE = re.compile(r"(\d+)-(\d+)|(\d+)")
_NAME = re.compile(r"[\w.:%-]+")  # host names and addresses
_ITEM = re.compile(r"([^,\[\]]*)(?:\[([^\]]*)\])?([^,\[\]]*)(?:,|$)")


def hosts(text: str) -> tuple[str, ...]:
    """Read `h0,h1`, `h[0-2,4]` or a file with a host a line; raises PoplarError."""
    if Path(text).is_file():
        lines = Path(text).read_text(encoding="utf-8", errors="replace").splitlines()
        text = ",".join(
            line.split("#")[0].split()[0] for line in lines if line.split("#")[0].split()
        )
    names = tuple(_expanded(text))
    if not names or not all(_NAME.fullmatch(name) for name in names):
        raise PoplarError(f"--host {text!r}: hosts are needed, as h0,h1 or h[0-2,4], or a file")
    return names


def _expanded(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        item = _ITEM.match(text, at)
        if item is None:
            yield ""  # what no host is called
            return
        head, numbers, tail = item.groups()
        yield from (f"{head}{number}{tail}" for number in _numbers(numbers))
        at = item.end()


def _numbers(text: str | None) -> Iterator[str]:
    """Return the numbers of `0-2,4`, with leading zeros as they stand."""
    for part in [""] if text is None else text.split(","):
        span = _RANGE.fullmatch(part)
        if text is None or span is None or span[3] is not None:
            yield part
            continue
        first, last = int(span[1]), int(span[2])
        if last - first >= MAX_HOSTS:
            raise PoplarError(f"--host: {part} are more than {MAX_HOSTS} hosts")
        yield from (str(number).zfill(len(span[1])) for number in range(first, last + 1))


def is_local(name: str) -> bool:
    """Return whether a name is one of this host's."""
    host = socket.gethostname()
    return name in ("localhost", "127.0.0.1", "::1", host, host.partition(".")[0])


def divided(topology: Topology) -> Topology:
    """Return the topology when it divides evenly; raises PoplarError."""
    divisions = (
        (topology.replicas, topology.instances, "--num-replicas", "--num-instances"),
        (topology.instances, len(topology.hosts), "--num-instances", "the number of hosts"),
        (topology.instances, topology.ilds, "--num-instances", "--num-ilds"),
        (topology.ilds, len(topology.hosts), "--num-ilds", "the number of hosts"),
    )
    for total, parts, name, by in divisions:
        if total % parts:
            raise PoplarError(f"{name} is {total} and {by} {parts}; the first must be a multiple")
    return topology


def table(topology: Topology) -> str:
    """Draw hosts, IPU-Link domains, instances and replicas below each other, as PopRun does."""
    of_host = topology.instances // len(topology.hosts)
    of_ild = topology.instances // topology.ilds
    replicas = topology.local_replicas
    cells = [
        " ".join(str(instance * replicas + replica) for replica in range(replicas))
        for instance in range(topology.instances)
    ]
    rows: tuple[tuple[str, int, Sequence[str]], ...] = (
        ("hosts", of_host, topology.hosts),
        ("ILDs", of_ild, list(map(str, range(topology.ilds)))),
        ("instances", 1, list(map(str, range(topology.instances)))),
        ("replicas", 1, cells),
    )
    # A cell of several instances is as wide as theirs with the bars between them.
    width = max(-(-(len(text) + 3) // span) - 3 for _, span, texts in rows for text in texts)
    lines = [_row(label, texts, span, width) for label, span, texts in rows]
    rule = "-" * len(lines[0])
    title = "poprun topology".center(len(rule)).rstrip()
    return "\n".join([title, rule, *(text for line in lines for text in (line, rule))])


def _row(label: str, texts: Sequence[str], span: int, width: int) -> str:
    cell = span * width + (span - 1) * 3
    return "| " + " | ".join([f"{label:9}", *(text.center(cell) for text in texts)]) + " |"
