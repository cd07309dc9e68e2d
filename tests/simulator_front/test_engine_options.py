"""The engine's options."""

from __future__ import annotations

import json

import pytest

from simulator.graph.errors import InvalidOptionError, PoplarError
from simulator.options import OptionFlags, as_texts, resolve

# Options whose value here asks for what a simulator does not have.
NOT_DONE: list[tuple[str, object]] = [
    ("autoReport.outputArchive", True),
    ("autoReport.outputSerializedGraph", True),
    ("debug.retainDebugInformation", False),
    ("debug.instrumentControlFlow", True),
    ("profiler.includeFlopEstimates", False),
    ("profiler.includeCycleEstimates", False),
    ("debug.outputAllSymbols", True),
    ("target.hostSyncTimeout", "60s"),
    ("streamCallbacks.numWorkerThreads", "auto"),
    ("opt.maxComputeSetsPerLoweredCopy", 6),
]


@pytest.fixture(autouse=True)
def _no_options_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POPLAR_ENGINE_OPTIONS", raising=False)


def test_two_runs_are_recorded_and_nothing_is_written_by_default() -> None:
    values = resolve(None)
    assert values["autoReport.executionProfileProgramRunCount"] == 2
    assert values["autoReport.outputGraphProfile"] is False


def test_all_turns_every_part_on_that_is_not_turned_off() -> None:
    values = resolve({"autoReport.all": "true", "autoReport.outputDebugInfo": "false"})
    assert values["autoReport.outputGraphProfile"] is True
    assert values["autoReport.outputDebugInfo"] is False
    assert values["autoReport.outputLoweredVars"] is True


def test_a_report_of_an_ipu_model_instruments_nothing_by_itself() -> None:
    values = resolve({"autoReport.all": True})
    assert not any(value for name, value in values.items() if "debug.instrument" in name)


# What is given, then compute, exchange with IPUs, with the host, and control flow.
@pytest.mark.parametrize(
    ("given", "instrumented"),
    [
        ({"debug.instrument": "true"}, [True, True, True, True]),
        ({"debug.instrument": True, "debug.instrumentCompute": False}, [False, True, True, True]),
        ({"debug.instrumentExternalExchange": "true"}, [False, True, True, False]),
        ({"debug.instrumentHostExchange": "true"}, [False, False, True, False]),
        ({"debug.instrumentCompute": "true"}, [True, False, False, False]),
    ],
)
def test_kinds_of_instrumentation_follow_one_another(
    given: dict[str, object], instrumented: list[bool]
) -> None:
    kinds = ("Compute", "ExternalExchange", "HostExchange", "ControlFlow")
    values = resolve(given)
    assert [values[f"debug.instrument{kind}"] for kind in kinds] == instrumented


def test_defaults_are_those_of_the_guides() -> None:
    values = resolve(None)
    assert {name: values[name] for name in DEFAULTS} == DEFAULTS


DEFAULTS = {
    "autoReport.directory": ".",
    "autoReport.streamAtEachRun": True,
    "debug.allowOutOfMemory": True,
    "debug.instrument": False,
    "debug.computeInstrumentationLevel": "tile",
    "profiler.blocks.tile": 0,
    "profiler.blocks.bufferSize": 1000,
    "profiler.blocks.implicitFlush": True,
    "exchange.enablePrefetch": False,
    "target.extendedMemory": False,
}


def test_option_flags_are_texts_that_can_be_set_and_cleared() -> None:
    flags = OptionFlags({"debug.instrument": True, "profiler.blocks.tile": 3})
    assert dict(flags) == {"debug.instrument": "true", "profiler.blocks.tile": "3"}
    flags.set("debug.instrument", "false").set({"autoReport.all": "true"})
    assert flags.at("debug.instrument") == "false"
    assert resolve(flags)["profiler.blocks.tile"] == 3
    assert list(flags) == ["debug.instrument", "profiler.blocks.tile", "autoReport.all"]
    flags.clear()
    assert not flags
    with pytest.raises(InvalidOptionError, match="'autoReport.all' is not set; set are none"):
        flags.at("autoReport.all")


def test_values_may_be_texts_of_any_case_and_hexadecimal() -> None:
    values = resolve(
        {
            "exchange.streamBufferOverlap": "hostrearrangeonly",
            "profiler.blocks.bufferSize": "0x200",
            "debug.allowOutOfMemory": "FALSE",
        }
    )
    assert values["exchange.streamBufferOverlap"] == "HostRearrangeOnly"
    assert values["profiler.blocks.bufferSize"] == 512
    assert values["debug.allowOutOfMemory"] is False


def test_facts_of_the_application_are_an_object_or_its_text() -> None:
    text = '{"name": "digits", "batch": 4}'
    assert resolve({"autoReport.app": {"name": "digits", "batch": 4}})["autoReport.app"] == text
    assert resolve({"autoReport.app": text})["autoReport.app"] == text


@pytest.mark.parametrize("option", [name for name, value in NOT_DONE])
def test_what_an_option_cannot_do_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    monkeypatch.setenv("POPLAR_LOG_LEVEL", "WARN")
    resolve(None)
    assert capsys.readouterr().err == ""
    value = next(value for name, value in NOT_DONE if name == option)
    resolve({option: value})
    line = capsys.readouterr().err
    assert f" PO:ENGINE   {line.split()[2]} W: {option} is {str(value).lower()}: " in line


def test_a_report_keeps_no_path_of_a_machine() -> None:
    texts = as_texts(
        resolve(
            {
                "autoReport.directory": "/home/somebody/report",
                "debug.graphReportDestination": "/var/log/graph.txt",
                "debug.loweredVarDumpFile": "/tmp/vars.txt",
            }
        )
    )
    assert texts["autoReport.directory"] == "report"
    assert texts["debug.graphReportDestination"] == "graph.txt"
    assert texts["debug.loweredVarDumpFile"] == "vars.txt"
    assert "target.saveArchive" not in texts
    assert as_texts(resolve({"autoReport.directory": "/"}))["autoReport.directory"] == "."
    assert texts["autoReport.all"] == "false"


def test_the_environment_wins_over_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    outside = {"autoReport.directory": "theirs", "autoReport.executionProfileProgramRunCount": "5"}
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", json.dumps(outside))
    values = resolve({"autoReport.directory": "ours", "autoReport.all": True})
    assert values["autoReport.directory"] == "theirs"
    assert values["autoReport.executionProfileProgramRunCount"] == 5
    assert values["autoReport.all"] is True


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"autoreport.all": "true"}, "no option 'autoreport.all'; did you mean autoReport.all"),
        ({"autoReport.all": "yes"}, "autoReport.all is 'yes'; true or false is needed"),
        (
            {"autoReport.executionProfileProgramRunCount": -1},
            "RunCount is -1; a number that is 0 or more is needed",
        ),
        ({"debug.computeInstrumentationLevel": "core"}, "must be one of tile, vertex"),
        ({"colour": "red"}, "no option 'colour'; known: autoReport.all"),
        ({"profiler.program.filter": "x"}, "did you mean profiler.programs.filter"),
        ({"profiler.blocks.filter": "("}, r"filter is '\('; a regular expression is needed"),
        ({"exchange.streamBufferOverlap": "all"}, "one of Any, HostRearrangeOnly, None"),
        ({"autoReport.app": "[1]"}, r"app is '\[1\]'; a JSON object is needed"),
        ({"autoReport.app": {"x": float("nan")}}, "a JSON object is needed"),
        ([("autoReport.all", True)], "a mapping of options is needed"),
        ({"profiler.blocks.tile": 2**63}, "9223372036854775808; a number below 2.63 is needed"),
        ({"profiler.blocks.tile": "9" * 400}, r"\.\.\. .402 characters.; a number below 2.63"),
        ({"profiler.blocks.tile": "9" * 5000}, "a number that is 0 or more is needed"),
        ({"profiler.blocks.tile": 10**5000}, "is a int that is too large to be shown"),
        ({"debug.computeInstrumentationLevel": 10**5000}, "must be one of tile, vertex"),
        ({"profiler.blocks.filter": "a{9999999999}"}, "a regular expression is needed"),
        ({"profiler.blocks.filter": "(" * 10**5}, "a regular expression is needed"),
        ({"autoReport.app": "[" * 10**5}, "a JSON object is needed"),
        ({"x" * 10**5: 1}, "no option 'x+... .100,002 characters.; known: autoReport.all"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(PoplarError, match=said):
        resolve(options)


def test_largest_number_is_taken() -> None:
    assert resolve({"profiler.blocks.tile": 2**63 - 1})["profiler.blocks.tile"] == 2**63 - 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[1]", "a JSON object"),
        ("[" * 10**5, "not JSON: nested too deeply$"),
        (
            '{"profiler.blocks.tile": ' + "9" * 5000 + "}",
            "not JSON: a number of over 4,300 digits$",
        ),
        ("[" + "1," * 50_000 + "1]", r"\.\.\. .100,005 characters.; a JSON object of options"),
    ],
)
def test_a_wrong_environment_is_refused(
    monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", text)
    with pytest.raises(PoplarError, match=f"POPLAR_ENGINE_OPTIONS: .*{said}"):
        resolve({})
