"""The documents as JSON: the same bytes for the same dataset on every machine."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from pva.collector import collector_paused
from pva.data.dataset import Dataset
from pva.errors import DamagedFileError
from pva.formats.beginnings import JSON_MARK
from pva.formats.documents import json_numbers
from pva.formats.documents.document import from_file, to_file
from pva.formats.files import replaced
from pva.formats.memory_limit import Budget
from pva.formats.values import shown
from pva.plain_file import contents
from pva.progress import part_of, reading

FORMAT = "a profile as JSON"


def read(path: str | PathLike[str]) -> Dataset:
    """Read a graph or execution profile, debug information or all in one; raises PvaError."""
    file = Path(path)
    with collector_paused():
        return from_file(file, decoded(file, contents(file, FORMAT), plain=False))


def write(dataset: Dataset, path: str | PathLike[str]) -> None:
    """Write one document (a file named graph, execution or debug) or all in one."""
    file = Path(path)
    replaced(file, encoded(to_file(dataset, file.stem)), FORMAT)


def decoded(file: Path, data: bytes, *, plain: bool = True) -> object:
    """Decode JSON into plain values, or with arrays in place of long lists of numbers.

    Raises DamagedFileError with the place of the first fault.
    """
    import msgspec  # profile.pop does without

    with collector_paused():
        try:
            with part_of(reading(file), len(data)) as tell_done:
                text, budget = data.removeprefix(JSON_MARK), Budget(file, len(data))
                return json_numbers.decoded(text, budget, plain=plain, tell=tell_done)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DamagedFileError(file, str(error), f"{FORMAT}, whole") from error
        except json_numbers.DuplicateKeyError as error:
            place, key = error.args
            problem = f"the key {shown(key)} twice"
            raise DamagedFileError(file, problem, "once", place=place) from error
        except RecursionError as error:
            raise DamagedFileError(file, "nested too deep", "a few levels") from error
        except MemoryError as error:
            raise DamagedFileError(file, "too large for the memory", FORMAT) from error


def encoded(nested: object, *, pretty: bool = False) -> bytes:
    """Encode nested dicts with NumPy arrays in them; what is not a number becomes null."""
    option = orjson.OPT_SERIALIZE_NUMPY | (orjson.OPT_INDENT_2 if pretty else 0)
    return orjson.dumps(nested, default=_listed, option=option) + b"\n"


def plain(nested: object) -> Any:
    """Return what is read when nested dicts have been written: no arrays, None for no number."""
    return orjson.loads(encoded(nested))


def _listed(value: object) -> object:
    """Turn the arrays that orjson does not take as they are into lists."""
    if isinstance(value, np.ndarray):
        return value.tolist() if value.dtype.kind == "O" else np.ascontiguousarray(value)
    raise TypeError(type(value).__name__)
