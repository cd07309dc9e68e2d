from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from simulator.serving.server import Server
from tests.serving.small_models import SYNCHRONOUS, compile_linear, write_model


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compiled")
    compile_linear(folder)
    return folder


@pytest.fixture
def started(compiled: Path, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Start servers of the one small model, with more in its configuration; close them."""
    servers: list[Server] = []

    def start(
        more: str = SYNCHRONOUS,
        *,
        mode: str = "none",
        report: Path | None = None,
        **options: object,
    ) -> Server:
        folder = write_model(tmp_path / "models", "lin", more, **options)
        shutil.copytree(compiled, folder / "1", dirs_exist_ok=True)
        server = Server(tmp_path / "models", mode, report)
        servers.append(server)
        server.start(["lin"])
        return server

    yield start
    for server in servers:
        server.close()


@pytest.fixture(scope="session")
def server(compiled: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return a server that tests only ask."""
    models = tmp_path_factory.mktemp("models")
    folder = write_model(models, "lin", labels='label_filename: "names.txt"')
    (folder / "names.txt").write_text("ape\nbee\n")
    shutil.copytree(compiled, folder / "1", dirs_exist_ok=True)
    server = Server(models)
    server.start()
    yield server
    server.close()
