"""The face of the programming model."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from simulator import poplar

ROOT = Path(__file__).parents[2]

# Names of the guides and of Poplar's reference that a program may use.
DOCUMENTED = """
Graph Engine Tensor ComputeSet Device DeviceManager IPUModel Target TargetType OptionFlags Type
Vertex SupervisorVertex MultiVertex Input Output InOut Vector VectorList Function DataStream
RemoteBuffer ReplicatedStreamMode StreamCallback SyncType Interval replication_factor concat append
program serializeToJSON serializeToCBOR printProfileSummary printGraphSummary printExecutionSummary
graph_memory_allocation_error graph_connection_error invalid_option invalid_tile_mapping
stream_connection_error poplar_error IpuLinkTopology IpuLinkConfiguration GlobalExchangeConstraint
BOOL CHAR UNSIGNED_CHAR SHORT UNSIGNED_SHORT INT UNSIGNED_INT LONGLONG UNSIGNED_LONGLONG HALF FLOAT
"""

PROGRAMS = """
Sequence Execute Repeat RepeatWhileTrue RepeatWhileFalse If Switch Copy WriteUndef Sync Call
PrintTensor Block CrossReplicaCopy ErrorProgram Abort AbortOnCondition
AssumeEqualAcrossReplicas
"""


@pytest.mark.parametrize("name", DOCUMENTED.split())
def test_poplar_hands_on_what_is_documented(name: str) -> None:
    assert name in poplar.__all__
    assert getattr(poplar, name) is not None


@pytest.mark.parametrize("name", PROGRAMS.split())
def test_every_program_of_the_guide_is_there(name: str) -> None:
    assert issubclass(getattr(poplar.program, name), poplar.program.Program)


# The names of arguments in Poplar's headers: a program may give them by keyword.
ARGUMENTS = {
    "Graph.addVariable": "type shape mappingMethod name",
    "Graph.addConstant": "type shape values name",
    "Graph.addVertex": "cs vertexType connections",
    "Graph.addHostToDeviceFIFO": "handle elementType numElements replicatedMode options",
    "Graph.addDeviceToHostFIFO": "handle elementType numElements options",
    "Graph.addRemoteBuffer": "handle elementType numElements repeats rearrangeOnHost",
    "Graph.createHostRead": "handle t rearrangeOnHost",
    "Graph.createHostWrite": "handle t rearrangeOnHost",
    "Graph.createReplicatedGraph": "replicationFactor",
    "Tensor.slice": "begin end dimension",
    "Tensor.index": "indices",
    "Tensor.reshape": "shape",
    "Tensor.reshapePartial": "beginIndex endIndex newDims",
    "Tensor.dimShuffle": "permutation",
    "Tensor.dimRoll": "dimIdx newIdx",
    "Tensor.broadcast": "N dimension",
    "Tensor.expand": "indices",
    "Tensor.squeeze": "indices",
    "Tensor.flatten": "dimBegin dimEnd",
    "Tensor.reverse": "dimension",
    "Tensor.subSample": "stride dimension",
    "Tensor.upsample": "scale dimension method",
    "Tensor.reinterpret": "type",
    "Engine.run": "prog debugName",
}


@pytest.mark.parametrize("method", ARGUMENTS)
def test_methods_take_poplars_arguments_by_place_or_name(method: str) -> None:
    owner, _, name = method.partition(".")
    arguments = list(inspect.signature(getattr(getattr(poplar, owner), name)).parameters)[1:]
    assert arguments[: len(ARGUMENTS[method].split())] == ARGUMENTS[method].split()


def test_programs_take_what_may_follow_in_poplar() -> None:
    graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())
    source, target = graph.addVariable(poplar.FLOAT, [4]), graph.addVariable(poplar.FLOAT, [4])
    plain = poplar.program.Copy(source, target, "named")
    inlined = poplar.program.Copy(source, target, True, "named")
    both = poplar.program.Sequence([plain, inlined], "named")
    assert (plain.name, inlined.name, both.name) == ("named", "named", "named")
    assert (inlined.offset, both.children) == (None, [plain, inlined])
    assert poplar.program.Sequence("named").name == "named"


def test_a_copy_from_stream_to_stream_names_both() -> None:
    graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())
    source = graph.addHostToDeviceFIFO("a", poplar.FLOAT, 4)
    end = graph.addDeviceToHostFIFO("b", poplar.FLOAT, 4)
    with pytest.raises(poplar.PoplarError, match="from stream 'a' to stream 'b'; one must be a"):
        poplar.program.Copy(source, end)


def test_a_codelet_in_cpp_is_refused_with_what_to_write_instead() -> None:
    graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())
    with pytest.raises(poplar.PoplarError, match="C.. is not compiled here, write its compute"):
        graph.addCodelets("tut3_codelets.cpp")


def test_all_names_are_there_and_no_others_are_said_to_be() -> None:
    assert [name for name in poplar.__all__ if not hasattr(poplar, name)] == []
    assert set(poplar.__all__) <= set(dir(poplar))
    with pytest.raises(AttributeError, match="no attribute 'Grahp'"):
        _ = poplar.Grahp


def test_errors_of_poplar_are_runtime_errors() -> None:
    names = [name for name in poplar.__all__ if name.endswith(("error", "Error", "invalid_option"))]
    assert all(issubclass(getattr(poplar, name), RuntimeError) for name in names)
    assert all(issubclass(getattr(poplar, name), poplar.PoplarError) for name in names)


def test_importing_poplar_loads_no_format() -> None:
    script = "import simulator.poplar, sys; print('\\n'.join(sys.modules))"
    command = [sys.executable, "-c", script]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert not {"cbor2", "orjson", "msgspec", "pva.formats.registry"} & set(loaded.split())
