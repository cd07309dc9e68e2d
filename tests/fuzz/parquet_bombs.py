"""Directories of Parquet in which very much is packed into few bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pva import schema
from pva.formats import parquet
from tests.builders import small_report


def packed_tables(path: Path, size: int) -> None:
    """Write a directory of Parquet whose steps pack well."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    parquet.write(small_report(), path)
    file = path / "steps.parquet"
    rows = pq.read_table(file).slice(0, 1)
    repeated = rows.take(pa.array(np.zeros(1 << 20, dtype=np.int32)))
    with pq.ParquetWriter(file, repeated.schema, compression="zstd") as writer:
        for _ in range(max(size >> 24, 4)):
            writer.write_table(repeated)


def packed_texts(path: Path, size: int) -> None:
    """Write a directory of Parquet with a long text that is told very often."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    parquet.write(small_report(), path)
    file = path / "compute_sets.parquet"
    known = pq.read_table(file)
    rows = 1 << 19
    columns = [
        pa.array(["a" * 500] * rows) if field.type == pa.string() else
        known.column(number).slice(0, 1).take(pa.array(np.zeros(rows, np.int32)))
        for number, field in enumerate(known.schema)
    ]  # fmt: skip
    pq.write_table(pa.Table.from_arrays(columns, schema=known.schema), file, compression="zstd")


def zeros_in_parquet(path: Path, size: int) -> None:
    """Write a directory of Parquet with an array that is zero in very many places."""
    import pyarrow.parquet as pq

    parquet.write(small_report(), path)
    for array in (a for a in schema.ARRAYS if a.index == ("compute_set", "tile")):
        file = path / f"{array.name}.parquet"
        if not file.exists():
            continue
        found = pq.read_table(file).slice(0, 0)
        told = {**found.schema.metadata, b"tilescope.shape": b"[3, 5242880]"}
        pq.write_table(found.replace_schema_metadata(told), file)
