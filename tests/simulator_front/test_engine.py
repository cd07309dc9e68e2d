"""The engine as a program meets it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simulator import poplar, popops
from simulator.poplar import FLOAT, PoplarError, program


def engine(options: dict[str, Any] | None = None, elements: int = 4) -> poplar.Engine:
    """Return an engine that doubles `x` in its first program and negates it in its second."""
    device = poplar.IPUModel("tiny").createDevice()
    graph = poplar.Graph(device.getTarget())
    x = graph.addVariable(FLOAT, [elements], "x")
    graph.setTileMapping(x, 2)
    graph.createHostWrite("write", x)
    graph.createHostRead("read", x)
    double, negate = program.Sequence(), program.Sequence()
    popops.addInPlace(graph, x, x, double)
    negate.add(program.Copy(popops.neg(graph, x, negate), x))
    made = poplar.Engine(graph, [double, negate], options)
    made.load(device)
    return made


def test_programs_are_run_by_their_number_and_values_stay() -> None:
    made = engine()
    made.writeTensor("write", [1, 2, 3, 4])
    for number in (0, 1, 0):
        made.run(number)
    assert made.readTensor("read").tolist() == [-4, -8, -12, -16]


def test_a_tensor_can_be_read_into_an_array() -> None:
    made = engine()
    made.writeTensor("write", np.ones(4))
    out = np.zeros((2, 2), np.float32)
    assert made.readTensor("read", out) is out
    assert out.tolist() == [[1, 1], [1, 1]]


def test_loading_again_starts_at_zero() -> None:
    made = engine()
    made.writeTensor("write", np.ones(4))
    made.load(poplar.IPUModel("tiny").createDevice())
    assert not made.readTensor("read").any()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda e: e.run(2), "program 2; there are programs 0 to 1"),
        (lambda e: e.readTensor("write"), "host read 'write': unknown; there are read"),
        (lambda e: e.writeTensor("x", [1]), "host write 'x': unknown; there are write"),
        (lambda e: e.writeTensor("write", [1]), "host write 'write': 1 values for x of 4"),
        (lambda e: e.readTensor("read", np.zeros(3)), "array of 3 elements for x of 4"),
        (lambda e: e.connectStream("in", [1]), "stream 'in': unknown; streams are none"),
        (
            lambda e: e.load(poplar.IPUModel("mk1").createDevice()),
            "the graph is for 1 x tiny with 4 tiles, the device is 1 x mk1 with 1,216",
        ),
    ],
)
def test_wrong_calls_are_refused(wrong: Any, said: str) -> None:
    with pytest.raises(PoplarError, match=said):
        wrong(engine())


def test_a_device_must_be_loaded_first() -> None:
    graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())
    made = poplar.Engine(graph, program.Sequence())
    with pytest.raises(PoplarError, match="load a device before running"):
        made.run()


def test_an_engine_needs_programs() -> None:
    graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())
    with pytest.raises(PoplarError, match="no program; at least one"):
        poplar.Engine(graph, [])


def test_two_writers_are_refused_when_the_engine_is_made() -> None:
    graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())
    x = graph.addVariable(FLOAT, [2], "x")
    graph.setTileMapping(x, 0)
    both = program.Sequence()
    popops.addInPlace(graph, poplar.concat([x, x]), poplar.concat([x, x]), both)
    with pytest.raises(PoplarError, match="variable 'x' has two writers: vertex popops::BinaryOp"):
        poplar.Engine(graph, both)


def test_a_program_that_copies_an_unmapped_variable_is_refused() -> None:
    graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())
    x, y = graph.addVariable(FLOAT, [2], "x"), graph.addVariable(FLOAT, [2], "y")
    graph.setTileMapping(x, 0)
    copy = program.Repeat(2, program.Sequence(program.Copy(x, y)))
    with pytest.raises(PoplarError, match="variable 'y': element 0 of 2 is not mapped"):
        poplar.Engine(graph, copy)


def test_a_tile_that_is_too_small_is_named_when_that_is_not_allowed() -> None:
    with pytest.raises(
        PoplarError, match=r"out of memory on 1 tile\(s\): tile 2 needs [\d,]+ bytes"
    ):
        engine({"debug.allowOutOfMemory": False}, 200_000)
    assert engine({}, 200_000).readTensor("read").size == 200_000


def test_a_model_can_be_changed_before_its_device_is_made() -> None:
    model = poplar.IPUModel("mk1", tilesPerIPU=16)
    model.compileIPUCode = True
    target = model.createDevice().getTarget()
    assert target.getNumTiles() == model.tilesPerIPU == 16
    assert target.compile_ipu_code
    assert poplar.IPUModel(ipuVersion="ipu1").createDevice().getTarget().name == "mk1"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: poplar.IPUModel("mk3"), "no part 'mk3'; known are mk1, mk2, bow, tiny"),
        (lambda: poplar.IPUModel("mk2", tilesPerIpu=4), "no member 'tilesPerIpu'; .* tilesPerIPU"),
    ],
)
def test_a_wrong_model_is_refused(wrong: Any, said: str) -> None:
    with pytest.raises(PoplarError, match=said):
        wrong()
