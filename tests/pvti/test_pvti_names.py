"""What `import pvti` and `import libpvti as pvti` offer, by name and by default."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_pvti_processes import run

import libpvti
import pvti
from pva.trace import openTrace
from pvti.options import Options

GUIDE = Path(__file__).parents[2] / "docs" / "tracing.md"
LIBPVTI = {
    "Graph",
    "HeatmapDouble",
    "HeatmapFloat",
    "HeatmapInt",
    "Tracepoint",
    "checkTraceChannel",
    "closeTrace",
    "createJsonMetadata",
    "createTraceChannel",
    "disableTraceChannel",
    "enableTraceChannel",
    "getCurrentTraceFilename",
    "instrument",
    "instrument_fn",
    "listTraceChannel",
    "traceDrivers",
    "traceFramework",
    "tracePoplar",
}
OURS = {"Metadata", "Series", "TraceChannel", "accelerated", "startTrace", "trace", "writeTrace"}


def test_the_names_are_those_of_libpvti_and_a_few_more() -> None:
    assert set(pvti.__all__) == LIBPVTI | OURS
    assert pvti.__all__ == sorted(pvti.__all__)


def test_the_name_that_scripts_import_hands_on_all() -> None:
    assert libpvti.__all__ == pvti.__all__
    assert all(getattr(libpvti, name) is getattr(pvti, name) for name in pvti.__all__)


def test_a_trace_starts_with_the_documented_defaults() -> None:
    defaults = {
        name: p.default for name, p in inspect.signature(pvti.startTrace).parameters.items()
    }
    assert defaults == {
        "directory": "", "channels": (), "duration": 0.0, "mode": "file", "seconds": 30.0,
    }  # fmt: skip


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="mode 'rings': one of file, ring"):
        pvti.startTrace(mode="rings")


def test_the_channels_of_the_sdk_are_there_and_enabled() -> None:
    assert [row[0] for row in pvti.listTraceChannel()][:3] == ["Drivers", "Poplar", "Framework"]
    assert pvti.createTraceChannel("Framework") is pvti.traceFramework
    assert pvti.checkTraceChannel(pvti.traceDrivers)
    assert repr(pvti.tracePoplar) == "TraceChannel('Poplar')"


def test_without_a_trace_there_is_no_file_name() -> None:
    pvti.closeTrace()
    assert pvti.getCurrentTraceFilename() == ""
    assert pvti.writeTrace() == ""


def test_the_guide_names_every_option_and_its_default() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    table = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", text, re.MULTILINE))
    assert table == {
        "enable": "`true`", "directory": "the working directory", "channels": "all",
        "duration": "0", "mode": '`"file"`', "seconds": "30",
    }  # fmt: skip
    assert set(table) - {"enable"} == set(Options._fields)


def test_what_the_guide_shows_runs(tmp_path: Path) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    pvti.closeTrace()
    path = pvti.startTrace(tmp_path)
    exec(block, {"loader": Loader()})
    pvti.closeTrace()
    trace = openTrace(path)
    assert [event.label for event in trace.threads[0].events] == ["epoch", "upload"]
    trace.close()


def test_a_program_starts_with_the_channels_of_the_sdk(tmp_path: Path) -> None:
    out, _ = run("import libpvti; print(libpvti.listTraceChannel())", tmp_path, None)
    assert out == "[['Drivers', True], ['Poplar', True], ['Framework', True], ['real', True]]\n"


class Loader:
    def first(self) -> int:
        return 1

    def __iter__(self) -> Iterator[int]:
        return iter([1])


def test_one_channel_may_be_asked_for_by_its_name(tmp_path: Path) -> None:
    pvti.closeTrace()
    wanted, other = pvti.createTraceChannel("wanted"), pvti.createTraceChannel("another")
    pvti.startTrace(tmp_path, channels="wanted")
    enabled = pvti.checkTraceChannel(wanted), pvti.checkTraceChannel(other)
    pvti.closeTrace()
    pvti.startTrace(tmp_path)  # all channels
    pvti.closeTrace()
    assert enabled == (True, False)
