"""Debug contexts of a program's own are written as Poplar's streamer writes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from simulator import popart


def inner(context: popart.DebugContext) -> None:
    popart.DebugInfo(context, "library").setValue("size", 3)


def outer(context: popart.DebugContext) -> None:
    info = popart.DebugInfo(context, "program")
    inner(popart.DebugContext(info, "inside"))


def test_contexts_are_written_with_names_parents_and_places(tmp_path: Path) -> None:
    path = tmp_path / "debug.json"
    popart.initializePoplarDebugInfo(str(path), "json")
    outer(popart.DebugContext("begin"))
    popart.closePoplarDebugInfo()
    document = json.loads(path.read_text())
    texts = document["stringTable"]
    within, around = document["contexts"]
    assert [texts[int(one["name"])] for one in (within, around)] == ["inside", "begin"]
    assert (around["parentId"], within["parentId"]) == (0, around["id"])
    assert (within["layer"], within["size"]) == ("library", 3)
    place = within["location"]
    assert texts[int(place["fileName"])] == __file__
    assert texts[int(place["functionName"])] == "outer"


def test_a_context_is_the_name_of_a_node() -> None:
    info = popart.DebugInfo(popart.DebugContext("layer"), "program")
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [2]))
    y = builder.aiOnnx.neg([x], debugContext=popart.DebugContext(info, "turned"))
    assert builder.getModelProto() is not None
    assert str(popart.DebugContext(info, "turned")) == "layer/turned"
    assert y


def test_without_a_file_nothing_is_written_and_other_formats_are_refused(tmp_path: Path) -> None:
    outer(popart.DebugContext())
    popart.closePoplarDebugInfo()
    with pytest.raises(popart.popart_exception, match="format 'xml'; json is needed"):
        popart.initializePoplarDebugInfo(tmp_path / "debug.xml", "xml")


def test_a_file_of_contexts_is_replaced_and_any_other_stays(tmp_path: Path) -> None:
    path = tmp_path / "debug.json"
    for _ in range(2):
        popart.initializePoplarDebugInfo(path)
        popart.closePoplarDebugInfo()
    path.write_text('{"contexts": "mine"}')
    with pytest.raises(popart.popart_exception, match="has no debug contexts"):
        popart.initializePoplarDebugInfo(path)
    assert path.read_text() == '{"contexts": "mine"}'
