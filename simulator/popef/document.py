"""`docs/popef-format.md`, written from the declaration: `python -m simulator.popef.document`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from simulator.popef import declaration
from simulator.popef.declaration import (
    ALIGNMENT,
    ARRAYS,
    BLOBS,
    FORMAT_VERSION,
    FRAME,
    FRAME_FIELDS,
    KINDS,
    Field,
)

INTRODUCTION = f"""# The PopEF format

This file is generated from `simulator/popef/declaration.py` by
`python -m simulator.popef.document`; a test compares the two. Format version {FORMAT_VERSION}.

A `.popef` file keeps a compiled program, how to run it, and the data that it needs. Model and
names are those of the Poplar Exchange Format (PopEF user guide, chapters 2 to 5). **The bytes are
tilescope's own**: those of Graphcore's files are not public. A file of Graphcore's SDK is refused
by that name here; ours begins so that no tool should take it for one of theirs. Fields marked
*own* are not in Graphcore's model.

* **A file is a list of blobs**, nothing else: no head, no index. Blobs may be appended, files
  joined end to end. The blobs of one model may lie in several files, and one file may have several
  models: the name of the executable binds them.
* **A reader** goes from frame to frame. It holds every size against the length of the file before
  it takes memory, and reads no payload before it is asked for. Metadata, tensors and listings need
  nothing of the executable; nothing is unpickled or run.
* **An executable runs** only after its versions and its SHA-256 were looked at. Files of another
  version of the simulator are refused: as with Poplar's, compile anew.
* **Values** of JSON are those that `popef_dump` shows: whole numbers as texts, so that all 64 bits
  are kept; true and false as they are. Fields that a reader does not know are passed over.
"""
FRAME_TEXT = f"""
## The frame

Each blob begins with {FRAME.size} bytes, little-endian. The structure follows at once, then the
payload, then zeros up to a multiple of {ALIGNMENT} bytes.
"""
WRITERS = """
## Who writes what

| writer | blobs, in their order |
| --- | --- |
| `session.compileAndExport`, `saveExecutable` of PopART | metadata, executable, opaque `popart`, then a tensor for each weight |
| `session.saveVariables` | a tensor for each weight |
| `engine.saveExecutable` of Poplar | metadata, executable |
| `engine.saveVariables` | a tensor for each tensor that the host may read |

Numbers of programs, names and order of the anchors are PopART's: 0 WeightsFromHost,
1 OptimizerFromHost, 2 RandomSeedFromHost, 4 RngStateFromHost, 5 Program, 6 RngStateToHost,
7 WeightsToHost, 8 CycleCountTensorToHost. Here no program gives the seed back (3). A weight is the
same for all replicas on its way to the device, so that its anchor counts no replicas; every other
stream of several replicas does. The opaque blob `popart` is JSON: what a session needs to go on
with the executable. Behind the weights stand tensors for the optimiser's numbers that may change,
the seed, and, once there is an engine, the states of the generators.

`popef_dump FILE` prints the blobs in the form of the log of Graphcore's tool, `[popef:cpp]`
included, so that what reads such a log still does; `-m` prints the metadata alone, and `--all`
reads and checks every content. `tilescope info FILE.popef` says what the file is for.
"""  # noqa: E501
STRUCTURES: dict[str, tuple[str, Sequence[Field]]] = {
    "Metadata": ("of a `metadata` blob", declaration.METADATA),
    "Anchor": ("", declaration.ANCHOR),
    "TensorInfo": ("", declaration.TENSOR_INFO),
    "ProgramFlow": ("", declaration.PROGRAM_FLOW),
    "Option": ("", declaration.OPTION),
    "ExecutableInfo": ("of a `poplarExecutable` blob", declaration.EXECUTABLE_INFO),
    "TensorDataInfo": ("of a `dataTensor` blob", declaration.TENSOR_DATA_INFO),
    "FeedDataInfo": ("of a `dataFeed` blob", declaration.FEED_DATA_INFO),
    "OpaqueInfo": ("of an `opaque` blob", declaration.OPAQUE_INFO),
}


def table(*heads: str, rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def markdown() -> str:
    """Return the document."""
    frame = ((f"`{field.name}`", field.type, field.meaning) for field in FRAME_FIELDS)
    blobs = ((str(int(kind)), f"`{name}`", payload) for kind, (name, payload) in BLOBS.items())
    types = ((f"`{kind.value}`", kind.name, f"`{text}`") for kind, text in ARRAYS.items())
    parts = [
        INTRODUCTION,
        FRAME_TEXT,
        "\n",
        table("field", "type", "meaning", rows=frame),
        "\n## Blobs\n\n",
        table("type", "name", "payload", rows=blobs),
        "\n## Element types\n\nA float of 8 bits, which NumPy lacks, is read as its byte.\n\n",
        table("name", "of `DataType`", "NumPy's", rows=types),
        "\n## Structures\n",
        *(_structure(name, where, fields) for name, (where, fields) in STRUCTURES.items()),
        WRITERS,
    ]
    return "".join(parts)


def _structure(name: str, where: str, fields: Sequence[Field]) -> str:
    rows = (
        (f"`{f.name}`", KINDS[f.kind], f"{f.meaning}{' (*own*)' if f.own else ''}") for f in fields
    )
    head = f"\n### {name}\n\n" + (f"{where.capitalize()}.\n\n" if where else "")
    return head + table("field", "value", "meaning", rows=rows)


if __name__ == "__main__":
    sys.stdout.write(markdown())
