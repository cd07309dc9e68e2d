"""A model repository in a folder: models, their versions, and the files of each.

`<model>/config.pbtxt`, `<model>/<version>/executable.popef`, and beside it, where there are any,
`weights.popef` and `name_map.json`: names of the executable to names that clients use. Folders
whose name is no number are no versions. Source: Poplar Triton Backend user guide, section 1.4.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pva.errors import NotFoundError, PvaError
from pva.plain_file import contents
from simulator.serving.model_config import FILE, Settings, read_settings

EXECUTABLE, WEIGHTS, NAMES = "executable.popef", "weights.popef", "name_map.json"
LABELS_LIMIT, NAMES_LIMIT = 16 << 20, 4 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a model: its files, and the names that clients use."""

    number: int
    folder: Path
    executable: Path
    weights: Path | None
    names: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Model:
    """A model of a repository, with the versions that its policy serves."""

    settings: Settings
    versions: tuple[Version, ...]

    @property
    def newest(self) -> Version:
        """Return the version that is served to those who name none."""
        return self.versions[-1]


def model_names(repository: Path) -> list[str]:
    """Name the folders of a repository that may be models; raises PvaError."""
    if not repository.is_dir():
        raise NotFoundError(repository, "no such folder", "give the path of a model repository")
    try:
        folders = [entry for entry in repository.iterdir() if entry.is_dir()]
    except OSError as error:
        expected = "a folder that can be read"
        raise PvaError(repository, error.strerror or str(error), expected) from None
    return sorted(entry.name for entry in folders if not entry.name.startswith("."))


def read_models(repository: Path) -> dict[str, Model]:
    """Read all models of a repository; raises PvaError for the first that is wrong, or for none."""
    names = model_names(repository)
    if not names:
        raise PvaError(repository, "no model", f"a folder a model, with its {FILE}")
    return {name: read_model(repository, name) for name in names}


def read_model(repository: Path, name: str) -> Model:
    """Read one model: its configuration, and the versions that it serves; raises PvaError."""
    folder = repository / name
    if name in ("", ".", "..") or "/" in name or "\0" in name or not folder.is_dir():
        names = ", ".join(model_names(repository)) or "none"
        raise NotFoundError(repository, f"no model {name!r}", f"there are {names}")
    settings = read_settings(folder)
    numbers = [int(entry.name) for entry in folder.iterdir() if _is_version(entry)]
    served = _served(settings, sorted(numbers))
    return Model(settings, tuple(_version(folder / str(number)) for number in served))


def _is_version(entry: Path) -> bool:
    name = entry.name
    return entry.is_dir() and name.isdecimal() and name.isascii() and name == str(int(name))


def _served(settings: Settings, numbers: list[int]) -> list[int]:
    """Choose the versions that the policy serves: the highest one unless it says otherwise."""
    if not numbers:
        raise PvaError(settings.path.parent, "no version", f"a folder as 1/, with {EXECUTABLE}")
    policy = settings.config.version_policy
    choice = policy.WhichOneof("policy_choice")
    if choice == "all":
        return numbers
    if choice == "specific":
        selection = sorted(set(policy.specific.versions))
        missing = [number for number in selection if number not in numbers]
        if missing:
            available = ", ".join(map(str, numbers))
            place = "version_policy.specific.versions"
            raise PvaError(settings.path, str(missing[0]), f"there are {available}", place=place)
        return selection
    return numbers[-max(policy.latest.num_versions, 1) :]


def _version(folder: Path) -> Version:
    executable, weights = folder / EXECUTABLE, folder / WEIGHTS
    if not executable.is_file():
        raise NotFoundError(executable, "no such file", "what compileAndExport writes")
    names = folder / NAMES
    return Version(
        int(folder.name), folder, executable, weights if weights.is_file() else None,
        name_map(names) if names.exists() else {},
    )  # fmt: skip


def name_map(path: Path) -> dict[str, str]:
    """Read names of the executable to those that clients use, each once; raises PvaError."""
    expected = 'an object of texts, as {"h2d_1": "image"}'
    pairs: list[tuple[str, Any]] = []

    def keep(items: list[tuple[str, object]]) -> None:
        pairs[:] = items

    try:
        text = contents(path, "a name map", NAMES_LIMIT).decode()
        if not text.lstrip().startswith("{"):
            raise PvaError(path, "no object", expected)
        json.loads(text, object_pairs_hook=keep)
    except (ValueError, RecursionError) as error:
        raise PvaError(path, f"no JSON: {error}", expected) from None
    names: dict[str, str] = {}
    for name, client in pairs:
        if not isinstance(client, str) or not client:
            raise PvaError(path, ascii(client), "a name for clients", place=name)
        if name in names or client in names.values():
            raise PvaError(path, f"{client!r} twice", "each name once", place=name)
        names[name] = client
    return names
