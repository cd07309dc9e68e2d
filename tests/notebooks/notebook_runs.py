"""Notebooks of the examples, run in a kernel of their own, and what their cells print."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).parents[2]
FOLDERS = ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "TMPDIR")


def kept(name: str) -> Any:
    """Read a notebook as it is kept."""
    return nbformat.read(ROOT / "examples" / "notebooks" / name, as_version=4)


def run(name: str, folder: Path, place: Path | None = None) -> Any:
    """Run a notebook with nobody's settings, in a folder that holds all that it writes."""
    environment = dict.fromkeys(FOLDERS, str(folder)) | {"PYTHONPATH": str(ROOT)}
    others = {key: value for key, value in os.environ.items() if key != "PVTI_OPTIONS"}
    resources = {"metadata": {"path": str(place or folder)}}
    client = nbclient.NotebookClient(kept(name), timeout=600, resources=resources)
    return client.execute(env=others | environment)


def outputs(notebook: Any) -> list[Any]:
    """List what the cells gave, in order."""
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def printed(notebook: Any, stream: str = "stdout") -> str:
    """Join what the cells printed."""
    return "".join(o.text for o in outputs(notebook) if o.get("name") == stream)


def is_bare(notebook: Any) -> bool:
    """Return whether no cell holds an output, and whether it is a valid notebook."""
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return all(not cell.outputs and cell.execution_count is None for cell in cells)
