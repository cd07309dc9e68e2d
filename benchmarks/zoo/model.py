"""A model of the zoo, wherever it comes from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MODEL_FILE = "model.onnx"


@dataclass(frozen=True, slots=True)
class Model:
    """A model: `write` writes it into a folder and returns its path.

    `options` are those of `tilescope simulate` for what the file leaves open.
    """

    name: str
    source: str
    write: Callable[[Path], Path]
    options: tuple[str, ...] = ()
