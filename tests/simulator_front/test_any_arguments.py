"""Whatever the public calls are given, one line comes out: a PoplarError, or that of a file."""

from __future__ import annotations

import inspect
import io
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pva.errors import UnknownFormatError
from simulator import poplar, poplin, popops, poprand, poputil
from simulator.poplar import program

ODD: list[Any] = [
    *(None, "", "x", "a\nb", -1, 0, 1, 3, 1 << 70, 1.5, float("nan"), float("inf"), True, b"x"),
    *([], [1], [0, 1], [[0, 1]], [[(0, 1)]], [(0, 99)], [None], [-1], (1, 2), set(), {1: 2}),
    *({}, {"debug.instrument": "maybe"}, object(), int, len, range(3), slice(None), ..., 1j),
    *(np.array([1, 2]), np.array(3), np.array(["x"]), np.zeros((2, 3), np.float32)),
    *(poplar.FLOAT, poplar.SyncType.INTERNAL, poplar.Vertex, poplar.StreamCallback),
]
PROGRAMS = [
    *(program.Sequence, program.Execute, program.Repeat, program.RepeatWhileTrue, program.If),
    *(program.Switch, program.Call, program.Block, program.Copy, program.CrossReplicaCopy),
    *(program.PrintTensor, program.ErrorProgram, program.WriteUndef, program.Sync),
    *(program.Abort, program.AbortOnCondition),
]
MADE = [poplar.Graph, poplar.Engine, poplar.IPUModel, poplar.OptionFlags, poplar.concat]
LIBRARY = [popops.add, popops.neg, popops.cast, popops.reduce, poplin.matMul]
LIBRARY += [popops.sort, popops.topK, popops.pad, poprand.uniform, poprand.dropout]
LIBRARY += [popops.rearrange.regroupIfBeneficial, poputil.broadcastToMatch, poputil.splitRegions]
# What goes on by itself, or writes to the terminal when it is given no stream.
LEFT_OUT = {"printProfileSummary"}


def everything() -> dict[str, Any]:
    """Return an engine that is ready to run, and all that it is made of."""
    device = poplar.IPUModel("tiny").createDevice()
    graph = poplar.Graph(device.getTarget())
    found: dict[str, Any] = {"device": device, "graph": graph, "target": device.getTarget()}
    for name, shape in (("a", [2, 3]), ("b", [6]), ("empty", [0])):
        found[name] = graph.addVariable(poplar.FLOAT, shape, name)
        graph.setTileMapping(found[name], 0)
    graph.createHostWrite("write", found["a"])
    graph.createHostRead("read", found["a"])
    found["stream"] = graph.addHostToDeviceFIFO("stream", poplar.FLOAT, 6)
    found["rows"] = graph.addRemoteBuffer("rows", poplar.FLOAT, 6, 3)
    found["set"], found["program"] = graph.addComputeSet("set"), program.Sequence()
    found["function"] = graph.addFunction(found["program"], "function")
    found["engine"] = engine = poplar.Engine(graph, program.Copy(found["stream"], found["b"]))
    engine.load(device)
    engine.setPrintStream(io.StringIO())
    engine.connectStream("stream", np.zeros(6, np.float32))
    return found


def methods(found: dict[str, Any]) -> list[Any]:
    """List the public methods of all objects, and what makes objects."""
    listed = [*PROGRAMS, *MADE, *LIBRARY]
    for thing in found.values():
        names = [name for name in dir(thing) if name[0] != "_" and name not in LEFT_OUT]
        camel = [name for name in names if not name.islower() or name in ("slice", "run", "load")]
        listed += [getattr(thing, name) for name in camel if callable(getattr(thing, name))]
    return listed


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Write what a call writes, such as an executable, where nothing is kept."""
    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("written"))
    yield
    os.chdir(before)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.data())
def test_only_poplar_errors_come_out(data: st.DataObject) -> None:
    found = everything()
    call = data.draw(st.sampled_from(methods(found)))
    most = len(inspect.signature(call).parameters)
    values = st.sampled_from([*ODD, *found.values(), *found.values()])
    arguments = data.draw(st.lists(values, min_size=max(most - 3, 0), max_size=most))
    try:
        call(*arguments)
    except (poplar.PoplarError, UnknownFormatError) as error:
        assert "\n" not in str(error)
    except TypeError as error:
        assert "argument" in str(error), error  # a wrong number of them
