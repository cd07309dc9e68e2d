"""`docs/trace-format.md`, written from the schema: `python -m pvti.document`."""

from __future__ import annotations

import sys

from pvti import schema
from pvti.recorder import COMMIT_SECONDS

INTRODUCTION = f"""# The trace format

This file is generated from `pvti/schema.py` by `python -m pvti.document`; a test compares the two.
Format version {schema.FORMAT_VERSION}.

A `.pvti` file holds what one process did on the host, up to its last commit. It is one SQLite
database with application id {schema.APPLICATION_ID:#x}, the format version as `user_version`, and a
rollback journal, so that a file that was copied, or whose writer was killed, is whole by itself.
A file is named after local time, time zone and process, such as
`Thu_Aug_27_09:46:55_2020_BST_2341.pvti` (`-` for `:` on Windows); where there is such a file
already, `_2` is added. A child process writes a file of its own.

* **Times** are nanoseconds of the process's monotonic clock. `processes` ties that clock to the
  wall clock at one moment, so that the files of several processes align.
* **Events** that ended are records of {schema.RECORD.size} bytes in `event_chunks`, in the order of
  their end, up to {schema.CHUNK_RECORDS:,} of one thread in a chunk: begin (u64), duration (u32),
  and in one u32 the label ({schema.LABEL_BITS} bits) and above it the kind; all little-endian.
  An event of {schema.DURATION_LIMIT:,} ns or more is a row of `long_events`, and so is one that
  another thread ended, as that of a generator. With all tables, a file of many events takes
  {schema.RECORD.size + 1} bytes an event at most.
* **Kinds**: {schema.NESTED}, {schema.KINDS[schema.NESTED]}: the event ended as the innermost of its
  thread. {schema.OVERLAPPING}, {schema.KINDS[schema.OVERLAPPING]}: it ended while events begun
  later were open. Depth and self time are not in the file: a reader finds them by one sweep a
  thread. Self time is that in which an event is the last begun of those open.
* **Open spans**: `open_spans` holds what had begun and not ended at the last commit.
* **Commits** are made every {COMMIT_SECONDS * 1e3:.0f} ms while there is something new, and every
  second while spans are open. A process that is killed loses what ended after its last commit.
* **A power cut** may cost more. The file is written with `synchronous` off: a commit hands pages to
  the operating system and does not wait for the disk. A killed process loses nothing that was
  committed. Where the machine itself stops, what the system had not yet written is gone, often the
  last half minute. Pages reach the disk in any order, so that the file may be damaged or empty: a
  reader then gives one error, or leaves out the chunks whose CRC does not fit. A trace that must
  outlive the machine is closed, and then handed to the disk (`sync FILE`).
* **Tasks**: an asyncio task that records something has a row of its own in `threads`, beside that
  of its thread, so that tasks that take turns do not mix. The row's `tid` is 2**40 and its `id`,
  its `name` that of the thread and of the task: `MainThread: reader`, or a number
  (`MainThread: task 1`) for tasks that the program gave no name. Once a task is done, the next one
  (of that name) takes its row over: there are as many rows as tasks at once. A span begun in one
  task and ended in another is in the row of the first. What other schedulers interleave in one
  thread is in the row of that thread; there an end belongs to the innermost begin of its label.
* **Ring mode** writes files of the same form: the last seconds, each time in a file of its own,
  with `finished` set and the spans then open.

Readers refuse a newer format version, and take files that are being written: a snapshot is what
one transaction sees. Numbers in `id` columns are those that other tables refer to.

## Tables
"""


def text() -> str:
    """Return the whole document."""
    parts = [INTRODUCTION]
    for table in schema.TABLES:
        parts.append(f"\n### `{table.name}`\n\n{table.meaning[0].upper()}{table.meaning[1:]}.\n\n")
        parts.append("| column | type | meaning |\n| --- | --- | --- |\n")
        parts += (
            f"| `{column.name}` | {column.type} | {column.meaning.replace('|', chr(92) + '|')} |\n"
            for column in table.columns
        )
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(text())
