"""Print how often each label of a host trace occurs and its microseconds, all depths."""

import json
import sys

import pva


def walk(event: pva.Event, found: dict) -> None:
    count, duration = found.get(event.label, (0, 0))
    found[event.label] = (count + 1, duration + event.duration)
    for child in event.children():
        assert child.timestamp >= event.timestamp
        walk(child, found)


trace = pva.openTrace(sys.argv[1])
labels: dict = {}
for process in trace.processes:
    for thread in trace.process(process.pid).threads:
        for root in process.thread(thread.tid).events:
            walk(root, labels)
print(json.dumps(labels))
