"""`docs/report-format.md`, written from the schema: `python -m pva.formats.describe`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from pva import schema
from pva.formats import parquet
from pva.formats.database import chunks, pop
from pva.formats.documents import document, steps, typed_arrays
from pva.formats.documents.places import INSIDE

VERSION_KEY = steps.VERSION_KEY
ABSENT_KEY = document.ABSENT_KEY
INNER = ", ".join(f"`{name}`" for name in INSIDE)
DOCUMENT_KEYS = ", ".join(f"`{key}`" for key in document.COMBINED.values())
INTRODUCTION = f"""# The report format

This file is generated from `pva/schema` by `python -m pva.formats.describe`; a test compares
the two. Format version {schema.FORMAT_VERSION}.

A report directory is what a run leaves: `profile.pop`, `debug.cbor`, `framework.json`, `app.json`,
a `.pvti` trace when the program was traced, and on request the documents `graph.json` or
`graph.cbor` and `execution.json` or `execution.cbor`. `pva.openReport` takes the directory or any
of the profiles.

`.tilescope-report` says what tilescope wrote into the directory: of each file its SHA-256, or, of
one that grows and whose writer has not ended, an identity that stands in the file, too (the table
`identity` of `profile.pop`, the process of a trace). A later report replaces these files alone. A
file that was changed since, or that stands there without being named, is refused in one line, and
nothing is touched; so is a directory without the marker, such as a report of a version before it.
While a process writes, it holds a lock on the directory, which ends with it: another is refused by
the name of the first. Where the file system has no locks nobody is.

## The documents

The graph profile and the execution profile have the keys, nesting, index orders and units of the
chapter "Profiling" of the Poplar and PopLibs user guide; what that chapter leaves open is added
beside its keys. Each document has `{VERSION_KEY}`; a newer one than is known is refused.
A file named `graph`, `execution` or `debug` holds that document, any other file holds them all,
under the keys {DOCUMENT_KEYS}.

* **Layouts.** *object*: one object whose keys are the columns. *columns*: an object with one list
  a column. *records*: a list of objects. *map*: an object from name to value. *list*: a list of
  the only column. Readers take columns and records alike.
* **Missing.** An optional key that is missing stands for -1 (whole numbers), not a number
  (fractions), the empty text, or the first of the values listed. Whole sections may be missing.
* **Not recorded.** Some tables and arrays stand inside the rows of another table:
  {INNER}.
  The list `{ABSENT_KEY}` of a document names those of them that were not recorded; a table that it
  does not name has no rows.
* **Codes** are written as the texts listed with them. Readers also take `sync` for `Sync` and
  `SharedStructureCopy` for `CopySharedStructure`.
* **JSON** is plain: arrays are nested lists, what is not a number is null. **CBOR** has RFC 8746
  typed arrays of the narrowest integer type where there are more than {typed_arrays.SHORT}
  numbers, tag 40 for shapes; the format `plain` has lists in
  their place. Readers take every mixture.
* **`debug.cbor`** keeps `name`, `location.fileName` and `location.functionName` as indexes into a
  list `stringTable`; the keys of the column `json` stand beside the others.
* **Repeated.** A step also has `name`, and `computeSet`, `exchange`, `externalExchange` or
  `hostExchange`, from its program, and `programTrace` lists the programs of all steps; readers do
  without. `memory.byCategory.<category>.total` is the sum of its regions.
* **Syncs** have `type` and `syncType` alone among the steps; their other columns are in
  `simulation.syncs`, one list a column, beside `step`, the row of steps.
* **Documents of other writers**, which have no `{VERSION_KEY}`, may have the keys of the chapter
  alone. What these determine is worked out when asked for: redundant figures of the target, how
  many replicas have the tiles of the lists by tile, the peak of liveness, one run of all steps,
  and, by replaying the clocks of the tiles, what syncs took, `steps_by_ipu`, `tile_clock`, idle
  tile cycles, and all steps where there is only `programTrace`.
* **Liveness** may also be told by a list `variables` (rows of `variables`) at each liveness step,
  in place of `variables.intervals`.

## `profile.pop`

One SQLite database with application id {pop.APPLICATION_ID:#x}, the format version as
`user_version`, and a rollback journal. A table or array that was not recorded is not there. Tables
marked *own* below are SQL tables of that name with those columns, codes as texts. Everything else
is in chunks, in the table `{pop.CHUNKS}`:

| column | meaning |
| --- | --- |
| `name` | an array, or a column as `table.column` |
| `first_row`, `rows` | which rows of it; chunks follow each other without a gap |
| `dtype` | {", ".join(sorted(chunks.DTYPES))}; little-endian, C order |
| `shape` | a JSON list, rows first |
| `encoding` | `raw` or `zlib` |
| `crc32` | of `data` as it is stored |
| `data` | at most {chunks.CHUNK_LIMIT >> 20} MB when unpacked |

Codes in chunks are indexes into the values listed. An array marked *replaced* is recorded whole
each time: its chunks from the latest that begins at row 0 on count. Runs are appended as they end,
each in one commit, so that a killed program leaves the runs that had ended.

## Parquet

`Report.to_parquet` and `tilescope convert --format parquet` write a directory with one file for
each table and array, named for it, with the rows of `report.frames`: codes as dictionaries of
texts, arrays in long form without their zeros. Fields have `unit` and `meaning` as metadata; files
have `{parquet.PREFIX}name`, `{parquet.PREFIX}format_version`, `{parquet.PREFIX}meaning`,
`{parquet.PREFIX}recorded_by` and, for an array, `{parquet.PREFIX}shape`. `pva.openReport` takes
the directory or one of its files.
"""


def text() -> str:
    """Write the whole description."""
    parts = [INTRODUCTION, "## Tables\n", *map(_table, schema.TABLES), "## Arrays\n", _arrays()]
    return "\n".join(parts)


def _table(table: schema.Table) -> str:
    place = f"`{table.place}`" if table.place else "the document itself"
    storage = "chunks" if table.wide else "own"
    head = (
        f"### {table.name}\n\n{_sentence(table.meaning)} In the {table.document} document at "
        f"{place}, as {table.layout}; in `profile.pop` {storage}. "
        f"Recorded with `{table.option}`.\n\n"
        "| column | key | kind | unit | meaning |\n| --- | --- | --- | --- | --- |\n"
    )
    return head + "\n".join(_columns(table)) + "\n"


def _columns(table: schema.Table) -> Iterator[str]:
    for column in table.columns:
        kind = f"{column.kind}, optional" if column.optional else column.kind
        meaning = column.meaning
        if column.values:
            meaning += f": {', '.join(column.values)}"
        yield f"| {column.name} | {column.document_key} | {kind} | {column.unit} | {meaning} |"


def _arrays() -> str:
    lines = [
        "| array | document | key | index | unit | meaning |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {a.name} | {a.document} | {a.place} | {''.join(f'[{axis}]' for axis in a.index)} "
        f"| {a.unit} | {_recorded(a)} |"
        for a in schema.ARRAYS
    ]
    return "\n".join(lines) + "\n"


def _recorded(array: schema.Array) -> str:
    """Return what an array means, how it is recorded, and with which option of its own."""
    has_option = array.option not in (schema.GRAPH_OPTION, schema.EXECUTION_OPTION)
    option = f"; recorded with `{array.option}`" if has_option else ""
    return f"{array.meaning}{'; replaced' * array.replaced}{option}"


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


if __name__ == "__main__":
    sys.stdout.write(text())
