"""Profiles that an engine gives: equal to the documents, serialised to their bytes, summarised."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pva import schema
from pva.check import check
from pva.errors import PvaError
from pva.formats import registry
from simulator import poplar
from simulator.engine_report import (
    printExecutionSummary,
    printGraphSummary,
    printProfileSummary,
)
from simulator.poplar import PoplarError
from simulator.profile.serialize import serializeToCBOR, serializeToJSON
from tests.every_program import engine

DOCUMENTS: tuple[schema.Document, ...] = ("graph", "execution")
OPTIONS = {"debug.instrument": True}


def reported(path: Path) -> poplar.Engine:
    made = engine({"autoReport.all": True, "autoReport.directory": str(path)} | OPTIONS)
    made.run()
    made.run()
    return made


def values(made: poplar.Engine) -> dict[str, Any]:
    return {"graph": made.getGraphProfile(), "execution": made.getExecutionProfile()}


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("suffix", ["json", "cbor"])
def test_a_profile_is_the_written_document_to_the_byte(
    tmp_path: Path, name: str, suffix: str
) -> None:
    value = values(reported(tmp_path))[name]
    file = tmp_path / f"{name}.{suffix}"
    registry.write(registry.read(tmp_path), file)
    written = io.BytesIO()
    {"json": serializeToJSON, "cbor": serializeToCBOR}[suffix](written, value)
    assert written.getvalue() == file.read_bytes()
    if suffix == "json":
        assert value == json.loads(file.read_text())


def test_profiles_need_no_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = engine()
    made.run()
    assert made.getExecutionProfile()["profilerMode"] == "IPU_MODEL"
    assert made.getGraphProfile()["graph"]["numVertices"] > 2
    assert list(tmp_path.iterdir()) == []


def test_a_reset_begins_a_new_section_and_keeps_the_report(tmp_path: Path) -> None:
    made = reported(tmp_path)
    both = made.getExecutionProfile()
    made.resetExecutionProfile()
    assert made.getExecutionProfile()["programTrace"] == []
    assert not np.any(made.getExecutionProfile()["computeSetCyclesByTile"])
    made.run()
    after = made.getExecutionProfile()
    assert [run["name"] for run in after["runs"]] == ["run 2"]
    assert after["runs"][0]["cyclesFrom"] == 0
    assert both["programTrace"] == 2 * both["programTrace"][: len(both["programTrace"]) // 2]
    assert registry.read(tmp_path).length("runs") == 3
    assert check(registry.of_values(graph=made.getGraphProfile(), execution=after)) == []


def test_a_section_is_timed_from_its_own_begin(tmp_path: Path) -> None:
    made = engine(OPTIONS)
    made.run()
    first = made.getExecutionProfile()
    made.resetExecutionProfile()
    made.run()
    second = made.getExecutionProfile()
    for profile in (first, second):
        profile["simulation"].pop("tileClock", None)
        profile["runs"] = [run["cycles"] for run in profile["runs"]]
    assert first == second


def test_json_goes_to_text_and_binary_streams_and_cbor_to_what_holds_bytes() -> None:
    value = {"a": [1, 2, 3], "b": None, "c": [0.5, None]}
    text, binary = io.StringIO(), io.BytesIO()
    serializeToJSON(text, value)
    serializeToJSON(binary, value, True)
    assert json.loads(text.getvalue()) == json.loads(binary.getvalue()) == value
    assert text.getvalue().count("\n") < binary.getvalue().count(b"\n")
    below = io.BytesIO()
    over = io.TextIOWrapper(below)
    serializeToCBOR(over, value)
    assert below.getvalue()[:1] == b"\xa3"
    with pytest.raises(PoplarError, match="serializeToCBOR: a text stream holds no bytes"):
        serializeToCBOR(io.StringIO(), value)


def test_what_is_no_value_is_refused() -> None:
    with pytest.raises(PoplarError, match="serializeToJSON: .*set"):
        serializeToJSON(io.StringIO(), {"a": {1, 2}})


def test_summaries_are_printed_of_values() -> None:
    made = engine(OPTIONS)
    made.run()
    graph, execution = made.getGraphProfile(), made.getExecutionProfile()
    texts = [io.StringIO() for _ in range(4)]
    printProfileSummary(texts[0], graph, execution, {"showExecutionSteps": "true"})
    printProfileSummary(texts[1], graph)
    printGraphSummary(texts[2], graph, {"showOptimizations": True})
    printExecutionSummary(texts[3], graph, execution)
    whole, graph_alone, optimizations, execution_alone = (text.getvalue() for text in texts)
    assert "GlobalExchange" in whole
    assert graph_alone.endswith("\n\nExecution profiling not enabled\n")
    assert whole.startswith(graph_alone.removesuffix("Execution profiling not enabled\n"))
    assert "variablesInGraph" in optimizations
    assert execution_alone.lstrip().startswith("Execution:")
    assert execution_alone.rstrip() in whole


def test_colours_are_an_option_that_the_environment_overrules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = engine().getGraphProfile()
    for option, environment, coloured in (
        ("false", {}, False), ("true", {}, True), ("true", {"CLICOLOR": "0"}, False),
        ("false", {"CLICOLOR_FORCE": "1"}, True),
    ):  # fmt: skip
        with monkeypatch.context() as changed:
            for name in ("CLICOLOR", "CLICOLOR_FORCE"):
                changed.delenv(name, raising=False)
            for name, value in environment.items():
                changed.setenv(name, value)
            text = io.StringIO()
            printGraphSummary(text, graph, {"colours": option})
            assert ("\x1b[" in text.getvalue()) == coloured


def test_options_of_a_summary_are_checked() -> None:
    graph = engine().getGraphProfile()
    with pytest.raises(PoplarError, match="no option 'showSteps'; known are showVarStorage"):
        printGraphSummary(io.StringIO(), graph, {"showSteps": "true"})
    with pytest.raises(PoplarError, match="showVarStorage is 'maybe'; it must be true or false"):
        printGraphSummary(io.StringIO(), graph, {"showVarStorage": "maybe"})
    printGraphSummary(io.StringIO(), graph, {"showExchangeInstructionBreakdown": "true"})


def test_a_value_that_is_no_profile_is_refused() -> None:
    with pytest.raises(PvaError, match="target.numIPUs"):
        printGraphSummary(io.StringIO(), {"target": {"numIPUs": "two"}})
