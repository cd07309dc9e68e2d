"""Streams as a graph adds them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from value_program import Values

from simulator import popops
from simulator.device import IPUModel
from simulator.engine import Engine
from simulator.graph.errors import HostAccessError, PoplarError
from simulator.graph.graph import Graph
from simulator.graph.host.streams import DataStream
from simulator.graph.program import Copy, Sequence
from simulator.graph.tensors.variables import VariableMappingMethod
from simulator.graph.types import FLOAT


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("images", FLOAT, 2), "stream 'images': there is one of this name already"),
        (("", FLOAT, 2), "stream '': a name is needed"),
        ((5, FLOAT, 2), "stream 5: a name is needed"),
        (("s", "float", 2), "stream 's': type is 'float'"),
        (("s", FLOAT, 0), "stream 's': 0 elements; at least 1 is needed"),
        (("s", FLOAT, 1.5), "stream 's': elements is 1.5; a number is needed"),
        (("s", FLOAT, 2, "broadcast"), "mode is 'broadcast'; ReplicatedStreamMode.REPLICATE or"),
    ],
)
def test_a_stream_that_cannot_be_is_refused(arguments: tuple[Any, ...], said: str) -> None:
    graph = Values().graph
    graph.addHostToDeviceFIFO("images", FLOAT, 2)
    with pytest.raises(PoplarError, match=said):
        graph.addHostToDeviceFIFO(*arguments)
    assert len(graph.streams) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"bufferDepth": 2}, "no option 'bufferDepth'; did you mean bufferingDepth"),
        ({"qqq": 2}, "no option 'qqq'; known: bufferingDepth, splitLimit"),
        ({"bufferingDepth": 0}, "bufferingDepth is 0; a number from 1 on is needed"),
        ({"bufferingDepth": "two"}, "bufferingDepth is 'two'; a number from 1 on"),
        ({"bufferingDepth": True}, "bufferingDepth is True; a number from 1 on"),
        ({"splitLimit": 3}, "splitLimit is 3; a number from 4 on is needed"),
    ],
)
def test_an_option_that_cannot_be_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(HostAccessError, match=f"stream 's': {said}"):
        Values().graph.addHostToDeviceFIFO("s", FLOAT, 2, options=options)


def test_a_stream_to_the_device_and_one_to_the_host_may_share_a_handle() -> None:
    device = IPUModel("tiny").createDevice()
    graph = Graph(device.getTarget())
    x = graph.addVariable(FLOAT, [2], VariableMappingMethod.LINEAR, "x")
    there, back = (
        add("x", FLOAT, 2) for add in (graph.addHostToDeviceFIFO, graph.addDeviceToHostFIFO)
    )
    with pytest.raises(PoplarError, match="stream 'x': there is one of this name already"):
        graph.addDeviceToHostFIFO("x", FLOAT, 2)
    doubled = popops.mul(graph, x, 2.0, program := Sequence(Copy(there, x)))
    program.add(Copy(doubled, back))
    engine = Engine(graph, program)
    engine.load(device)
    memory, sums = np.array([1.5, 3], np.float32), np.zeros(2, np.float32)
    engine.connectStream("x", memory)  # both ways, as of PopLibs' tests with one host memory
    engine.run()
    engine.run()
    assert memory.tolist() == [6, 12]
    engine.connectStream(back, sums)  # one of the two
    engine.run()
    assert (memory.tolist(), sums.tolist()) == ([6, 12], [12, 24])


def test_options_may_be_numbers_or_texts() -> None:
    graph = Values().graph
    made = graph.addDeviceToHostFIFO(
        "s", FLOAT, 2, options={"bufferingDepth": "2", "splitLimit": 64}
    )
    assert isinstance(made, DataStream)
    assert made.options == {"bufferingDepth": 2, "splitLimit": 64}
    assert (made.numElements(), made.elementType()) == (2, FLOAT)


def test_a_split_limit_of_none_or_above_the_targets_is_the_targets() -> None:
    graph = Values().graph
    highest = graph.target.stream_copy_limit
    none, over = (
        graph.addHostToDeviceFIFO(f"s{limit}", FLOAT, 2, options={"splitLimit": limit})
        for limit in (0, highest + 1)
    )
    assert none.options == {"bufferingDepth": 1}
    assert over.options == {"bufferingDepth": 1, "splitLimit": highest}
