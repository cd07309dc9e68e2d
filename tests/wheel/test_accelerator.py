"""The wheel has what is in C where there is a compiler, and works where there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IN_C = ("pvti/_accelerator", "simulator/graph/_kernels", "pva/_kernels", "pva/model/_rows")
PROGRAM = """
import pvti, os
pvti.startTrace(".")
with pvti.Tracepoint(pvti.traceFramework, "x"): pass
pvti.closeTrace()
print(pvti.accelerated, pvti.__file__, len([f for f in os.listdir(".") if f.endswith(".pvti")]))
"""

pytestmark = [pytest.mark.wheel, pytest.mark.xdist_group("wheel")]


def built(out: Path, path: str) -> zipfile.ZipFile:
    """Build the wheel with this search path for programs."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "LDSHARED")}
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", str(out)]
    done = subprocess.run(
        [*command, str(ROOT)],
        cwd=out, env={**environment, "PATH": path}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return zipfile.ZipFile(next(out.glob("*.whl")))


def run(wheel: zipfile.ZipFile, folder: Path) -> list[str]:
    wheel.extractall(folder / "unpacked")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PVTI"))}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=folder, capture_output=True, text=True, check=True,
        env={**environment, "PYTHONPATH": str(folder / "unpacked")},
    )  # fmt: skip
    return done.stdout.split()


@pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang")))
    or not Path(sysconfig.get_paths()["include"], "Python.h").is_file(),
    reason="no C compiler, or no headers of Python, on this machine",
)
def test_with_a_compiler_the_wheel_is_accelerated(tmp_path: Path) -> None:
    with built(tmp_path, os.environ["PATH"]) as wheel:
        for module in IN_C:
            names = [name for name in wheel.namelist() if name.startswith(module)]
            assert len(names) == 1
            assert not names[0].endswith(".c")
        assert "none-any" not in str(wheel.filename)
        accelerated, file, traces = run(wheel, tmp_path)
    assert (accelerated, traces) == ("True", "1")
    assert file.startswith(str(tmp_path))


def test_without_a_compiler_the_wheel_is_python(tmp_path: Path) -> None:
    with built(tmp_path, str(tmp_path)) as wheel:
        assert not [name for name in wheel.namelist() if name.startswith(IN_C)]
        assert str(wheel.filename).endswith("-py3-none-any.whl")
        assert run(wheel, tmp_path)[::2] == ["False", "1"]
