"""The wheel alone, in an environment outside the checkout, does the main job."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOP_LEVEL = {"pva", "pvti", "simulator", "dashboard", "cli", "libpvti"}

pytestmark = [pytest.mark.wheel, pytest.mark.xdist_group("wheel")]


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command without the checkout on its path; give what it prints."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", folder, ROOT, cwd=folder)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outside")
    run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    pip = (folder / "venv/bin/python", "-m", "pip", "-q", "--disable-pip-version-check")
    constraints = ROOT / "constraints.txt"
    run(
        *pip, "install", "--no-compile", "-c", constraints, f"{wheel}[dashboard,popart]", cwd=folder
    )
    return folder / "venv/bin"


def test_wheel_installs_the_packages_and_nothing_else(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {name for name in tops if not name.endswith(".dist-info")} == TOP_LEVEL


def test_an_index_takes_what_the_wheel_says_of_itself(wheel: Path) -> None:
    pytest.importorskip("twine")
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, cwd=wheel.parent)


def test_what_programs_import_says_that_it_is_typed(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"{package}/py.typed" for package in ("pva", "pvti", "libpvti", "simulator")} <= names


def test_installed_wheel_has_what_the_demo_needs(installed: Path, tmp_path: Path) -> None:
    code = "from simulator.examples import digits_pipeline as d; d.network(d.CROWDED)"
    run(installed / "python", "-c", f"import cli.demo; {code}", cwd=tmp_path)


def test_installed_wheel_trains_writes_a_report_and_prints_its_summary(
    installed: Path, tmp_path: Path
) -> None:
    network = ("mlp_digits", "--target", "tiny", "--epochs", "1")
    run(installed / "tilescope", "simulate", *network, "--out", "report", cwd=tmp_path)
    assert (tmp_path / "report/profile.pop").is_file()
    assert list((tmp_path / "report").glob("*.pvti"))
    summary = run(installed / "printProfileSummary", "report", cwd=tmp_path)
    assert "Total cycles:" in summary
