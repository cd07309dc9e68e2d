"""Which formats there are: detect one by its first bytes or its suffix, read it, write it.

A report directory holds `profile.pop`, or the documents graph and execution as JSON or CBOR, and
beside them `debug.cbor`, `app.json`, `framework.json` and traces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pva import schema
from pva.data import validation
from pva.data.dataset import Dataset
from pva.errors import DamagedFileError, NotFoundError, PvaError, UnknownFormatError
from pva.formats.beginnings import JSON_MARK, PARQUET, PARQUET_SUFFIX, SELF_DESCRIBED
from pva.formats.database import pop, sqlite_outside
from pva.formats.database.pop import ReportWriter, content_of
from pva.lazy import Package
from pva.plain_file import contents, opened

if TYPE_CHECKING:
    from pva.formats import parquet
    from pva.formats.documents import cbor_profile, completion, debug_cbor, document, json_profile
else:  # who reads another format, or writes one, imports it then
    parquet = Package("pva.formats.parquet")
    cbor_profile, completion, debug_cbor, document, json_profile = (
        Package(f"pva.formats.documents.{name}")
        for name in ("cbor_profile", "completion", "debug_cbor", "document", "json_profile")
    )

__all__ = [
    "FORMATS",
    "Format",
    "ReportWriter",
    "content_of",
    "detect",
    "directory_files",
    "encoded",
    "load_json",
    "of_profiles",
    "of_values",
    "read",
    "value_of",
    "write",
]

HEAD_BYTES = 64
# The value of a document, as an engine gives it, or where a report is.
Profile = Mapping[str, Any] | str | PathLike[str]


@dataclass(frozen=True, slots=True)
class Format:
    """One format: how it is told from others, and who reads and writes it."""

    name: str
    what: str
    suffixes: tuple[str, ...]
    begins: Callable[[bytes], bool]
    read: Callable[[Path], Dataset]
    write: Callable[[Dataset, Path], None]


def _is_json(head: bytes) -> bool:
    return head.removeprefix(JSON_MARK).lstrip().startswith(b"{")


def _is_cbor(head: bytes) -> bool:
    """Return whether this begins a CBOR map, behind the tag of self-described CBOR or not."""
    return head.removeprefix(SELF_DESCRIBED)[:1] in [bytes([b]) for b in (*range(0xA0, 0xBC), 0xBF)]


def _tells_nothing(head: bytes) -> bool:
    """Return whether a document may follow: of blanks, or of a CBOR tag that is not known."""
    return not head.strip() or 0xC0 <= head[0] <= 0xDB


FORMATS: tuple[Format, ...] = (
    Format(
        "pop", "profile.pop, an SQLite database", (".pop",),
        lambda head: head.startswith(sqlite_outside.MAGIC), pop.read, pop.write,
    ),
    Format(
        "json", "a graph or execution profile as JSON", (".json",), _is_json,
        lambda path: json_profile.read(path), lambda data, path: json_profile.write(data, path),
    ),
    Format(
        "cbor", "a graph or execution profile as CBOR", (".cbor",), _is_cbor,
        lambda path: cbor_profile.read(path), lambda data, path: cbor_profile.write(data, path),
    ),
    Format(
        "plain", "the same without tags", (), lambda _: False,
        lambda path: cbor_profile.read(path),
        lambda data, path: cbor_profile.write(data, path, plain=True),
    ),
    Format(
        "debug", "debug.cbor, the debug information", (), lambda _: False,
        lambda path: debug_cbor.read(path), lambda data, path: debug_cbor.write(data, path),
    ),
    Format(
        "parquet", "a directory of tables in Parquet", (PARQUET_SUFFIX,),
        lambda head: head.startswith(PARQUET),
        lambda path: parquet.read(path), lambda data, path: parquet.write(data, path),
    ),
)  # fmt: skip
BY_NAME = {entry.name: entry for entry in FORMATS}
DEBUG_STEM = "debug"

# What a report directory may hold, the preferred name first.
DIRECTORY: dict[str, tuple[str, ...]] = {
    "profile": ("profile.pop", "*.pop", "profile.cbor", "profile.json"),
    "graph": ("graph.cbor", "graph.json"),
    "execution": ("execution.cbor", "execution.json"),
    "debug": ("debug.cbor", "debug.json"),
    "framework": ("framework.json",),
    "app": ("app.json",),
    "trace": ("*.pvti",),
}
PARTS = tuple(chain.from_iterable(DIRECTORY.values()))  # patterns of what is read as a part of it


def detect(path: str | PathLike[str]) -> Format:
    """Detect the format of a file by its first bytes, else by its suffix.

    Raises NotFoundError, UnknownFormatError (which lists the formats) and DamagedFileError (empty).
    """
    file = Path(path)
    head = _head(file)
    if not head:
        raise DamagedFileError(file, "empty", _format_list())
    candidates = [entry for entry in FORMATS if entry.begins(head)]
    if _tells_nothing(head):
        candidates += [entry for entry in FORMATS if file.suffix.lower() in entry.suffixes]
    if candidates:
        return candidates[0]
    raise UnknownFormatError(file, f"begins with {head[:8]!r}", _format_list())


def read(path: str | PathLike[str]) -> Dataset:
    """Read a report: a file of any format, or a report directory; raises PvaError."""
    return _opened(_read_any(Path(path)))


def _opened(dataset: Dataset) -> Dataset:
    """Complete what another writer left out; raises InconsistentDataError of a wrong machine."""
    data = completion.completed(dataset) if dataset.foreign else dataset
    validation.check_opened(data)
    return data


def _read_any(where: Path) -> Dataset:
    if not _is_directory(where):
        return detect(where).read(where)
    files = directory_files(where)
    documents = ("profile", "debug") if "profile" in files else ("graph", "execution", "debug")
    parts = [_read_any(files[name]) for name in documents if name in files]
    if not parts or not {"profile", "graph", "execution"} & set(files):
        if parquet.files(where):
            return parquet.read(where)
        raise NotFoundError(where, "no report in this directory", _below(where))
    return Dataset.joined(parts, str(where))


def write(dataset: Dataset, path: str | PathLike[str], format: str | None = None) -> None:
    """Write a dataset in the format named, or in that of the suffix; raises PvaError.

    A file named graph, execution or debug holds that document alone.
    """
    file = Path(path)
    if format is None:
        by_suffix = {suffix: entry for entry in FORMATS for suffix in entry.suffixes}
        target = by_suffix.get(file.suffix.lower())
        if target is not None and (target.name, file.stem) == ("cbor", DEBUG_STEM):
            target = BY_NAME["debug"]
    else:
        target = BY_NAME.get(format)
    if target is None:
        if format:
            raise UnknownFormatError(
                file, f"no format {format!r}", f"there are {', '.join(BY_NAME)}"
            )
        raise UnknownFormatError(file, f"no format has the suffix {file.suffix!r}", _format_list())
    target.write(dataset, file)


def value_of(dataset: Dataset, name: schema.Document) -> dict[str, Any]:
    """Return a document as plain values: what is read from its JSON file."""
    value: dict[str, Any] = json_profile.plain(document.to_document(dataset, name))
    return value


def of_values(**documents: Mapping[str, object] | None) -> Dataset:
    """Make a dataset of documents given as plain values, each by its name; raises PvaError."""
    parts = {
        document.COMBINED[name]: documents[name]
        for name in document.COMBINED
        if documents.get(name)
    }
    return _opened(document.from_file("profile", parts))


def of_profiles(graph: Profile, execution: Profile | None = None) -> Dataset:
    """Read a graph profile and an execution profile as one report; raises PvaError."""
    profiles: dict[schema.Document, Profile] = {"graph": graph}
    if execution is not None:
        profiles["execution"] = execution
    datasets = {name: _profile(name, profile) for name, profile in profiles.items()}
    parts = list(datasets.values())
    if execution is not None:
        parts = [parts[0].select("graph", "debug"), parts[1].select("execution")]
    joined = Dataset.joined(parts, datasets["graph"].name)
    return _opened(joined)


def _profile(name: schema.Document, profile: Profile) -> Dataset:
    if isinstance(profile, Mapping):
        dataset = document.from_file(f"{name} profile", profile)
    else:
        dataset = _read_any(Path(profile))
    part = dataset.select(name)
    if not part.tables and not part.arrays:
        other_kind = "execution" if name == "graph" else "graph"
        remedy = "give the graph profile first, then its execution profile"
        raise UnknownFormatError(
            dataset.name, f"no {name} profile, but one of the {other_kind}", remedy
        )
    return dataset


def encoded(value: object, format: str, *, pretty: bool = False) -> bytes:
    """Encode plain values in `json` or `cbor`: a document gives the bytes of its file.

    `pretty` indents JSON. Raises TypeError and ValueError for what is no plain value.
    """
    if format == "json":
        return json_profile.encoded(value, pretty=pretty)
    return cbor_profile.encoded(value)


def directory_files(directory: Path) -> dict[str, Path]:
    """Return the files of a report directory by what they are; raises PvaError."""
    try:
        names = sorted(entry for entry in directory.iterdir() if entry.is_file())
    except OSError as error:
        problem = error.strerror or str(error)
        raise PvaError(directory, problem, "a report directory that can be read") from error
    files: dict[str, Path] = {}
    for kind, patterns in DIRECTORY.items():
        matches = [file for pattern in patterns for file in names if file.match(pattern)]
        if matches:
            files[kind] = matches[0]
    return files


def _below(directory: Path) -> str:
    """Name the reports in folders below, as engines with names leave them."""
    folders = sorted(file.parent.name for file in directory.glob("*/profile.pop"))
    return (
        f"give one of those below: {', '.join(folders)}" if folders else "profile.pop is looked for"
    )


def load_json(path: Path) -> object:
    """Read a JSON file such as app.json; raises PvaError."""
    return json_profile.decoded(path, contents(path, "a JSON file"))


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise PvaError(ascii(fspath(path)), problem, "the path of a report") from error


def _head(file: Path) -> bytes:
    try:
        with opened(file, "a report") as stream:
            return stream.read(HEAD_BYTES)
    except NotFoundError:
        raise NotFoundError(file, "no such file or directory", "give a report") from None
    except UnknownFormatError:
        raise UnknownFormatError(file, "no file", _format_list()) from None


def _format_list() -> str:
    names = [f"{entry.what} ({', '.join(entry.suffixes)})" for entry in FORMATS if entry.suffixes]
    return f"known formats: {'; '.join(names)}; a report directory"
