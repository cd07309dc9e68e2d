"""`debug.cbor`: where things come from, with each text kept once."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from pva.data.dataset import Dataset
from pva.formats.documents import cbor_profile
from pva.formats.documents.debug_strings import shared
from pva.formats.documents.document import to_document
from pva.formats.files import replaced

FORMAT = "debug information (debug.cbor)"


def read(path: str | PathLike[str]) -> Dataset:
    """Read debug information; raises PvaError."""
    return cbor_profile.read(path)


def write(dataset: Dataset, path: str | PathLike[str]) -> None:
    """Write the debug information of a dataset; raises NotRecordedError when it has none."""
    dataset.table("debug_contexts")
    file = Path(path)
    replaced(file, cbor_profile.encoded(shared(to_document(dataset, "debug"))), FORMAT)
