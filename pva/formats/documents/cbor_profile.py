"""The documents as CBOR: typed arrays of the narrowest type, or plain lists on request."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import cbor2
import numpy as np

from pva.collector import collector_paused
from pva.data.dataset import Dataset
from pva.errors import DamagedFileError
from pva.formats.beginnings import SELF_DESCRIBED
from pva.formats.documents import typed_arrays
from pva.formats.documents.cbor_values import Decoder
from pva.formats.documents.document import from_file, to_file
from pva.formats.files import replaced
from pva.formats.memory_limit import Budget
from pva.plain_file import contents

FORMAT = "a profile as CBOR"


def read(path: str | PathLike[str]) -> Dataset:
    """Read a graph or execution profile, debug information or all in one; raises PvaError."""
    file = Path(path)
    with collector_paused():
        return from_file(file, decoded(file, contents(file, FORMAT)))


def write(dataset: Dataset, path: str | PathLike[str], *, plain: bool = False) -> None:
    """Write one document (a file named graph, execution or debug) or all in one.

    `plain` writes lists in place of typed arrays, for readers that know no tags.
    """
    file = Path(path)
    replaced(file, encoded(to_file(dataset, file.stem), plain=plain), FORMAT)


def decoded(file: Path, data: bytes) -> object:
    """Decode CBOR, tagged or plain; raises DamagedFileError."""
    decoder = Decoder(data.removeprefix(SELF_DESCRIBED), Budget(file, len(data)))
    with collector_paused():
        try:
            return decoder.file()
        except (cbor2.CBORError, ValueError, TypeError, OverflowError, RecursionError) as error:
            place = decoder.place
            raise DamagedFileError(file, str(error), f"{FORMAT}, whole", place=place) from error
        except MemoryError as error:
            raise DamagedFileError(file, "too large for the memory", FORMAT) from error


def encoded(nested: object, *, plain: bool = False) -> bytes:
    """Encode nested dicts with NumPy arrays in them."""
    return cbor2.dumps(_without_arrays(nested, plain))


def _without_arrays(value: object, plain: bool) -> object:
    """Turn arrays, and lists that stand for arrays, into tags, or into lists.

    An array and the list of its numbers are one, and so are no number and null: a document read and
    written again is the same.
    """
    if isinstance(value, dict):
        return {key: _without_arrays(part, plain) for key, part in value.items()}
    numbers = None if plain else typed_arrays.numbers_in(value)
    if numbers is not None and numbers.size > typed_arrays.SHORT:
        return typed_arrays.encoded(numbers)
    if isinstance(value, np.ndarray):
        listed = value.tolist()
        return _without_arrays(listed, plain=True) if value.dtype.kind == "f" else listed
    if isinstance(value, list) and value and isinstance(value[0], dict | list | np.ndarray | float):
        return [_without_arrays(part, plain) for part in value]
    return None if isinstance(value, float) and value != value else value
