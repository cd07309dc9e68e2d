"""Build what is in C with the wheel, where there is a compiler; else the wheel is Python.

That is pvti's accelerator, the simulator's passes over intervals, pva's over traces and rows. As a
script it builds into the checkout: `python tools/build_accelerator.py`.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface as Hook
except ImportError:  # as a script
    Hook = object

# From the root of the checkout; the variable that says 0 where it is not to be built or used.
SOURCES = {
    "pvti/_accelerator.c": "PVTI_ACCELERATOR",
    "simulator/graph/_kernels.c": "SIMULATOR_KERNELS",
    "pva/_kernels.c": "PVA_KERNELS",
    "pva/model/_rows.c": "PVA_KERNELS",
}


def target(source: str) -> str:
    """Name the file to be built of a source, from the root of the checkout."""
    return f"{source.removesuffix('.c')}{sysconfig.get_config_var('EXT_SUFFIX')}"


def build(root: Path, source: str, out: Path, flags: str = "") -> str:
    """Build it as `out`, with more flags; give why it was not built, empty when it was."""
    linker = sysconfig.get_config_var("LDSHARED")
    if sys.platform == "win32":
        return build_by_setuptools(root / source, out)
    if not linker or sysconfig.get_config_var("Py_GIL_DISABLED") or sys.byteorder == "big":
        return "not for this Python"
    part = out.with_suffix(".part")  # a program that runs may have `out` loaded
    options = shlex.split(f"{sysconfig.get_config_var('CCSHARED') or ''} -O2 {flags}")
    options += [f"-I{sysconfig.get_paths()['include']}", source, "-o", str(part)]
    reason = ""
    # The compiler of this machine, where that of Python's own build is not here.
    for command in (os.environ.get("LDSHARED") or linker, "cc -shared"):
        try:
            subprocess.run(
                [*shlex.split(command), *options],
                cwd=root, check=True, capture_output=True, text=True,
            )  # fmt: skip
        except (OSError, subprocess.CalledProcessError) as error:
            reason = reason or str(getattr(error, "stderr", None) or error).strip()
        else:
            part.replace(out)
            return ""
    return reason


def build_by_setuptools(source: Path, out: Path) -> str:
    """Build it with the compiler that setuptools finds, which on Windows is MSVC; give why not."""
    name = out.name.partition(".")[0]
    with tempfile.TemporaryDirectory() as folder:
        extension = f"Extension({name!r}, [{str(source)!r}])"
        arguments = ["build_ext", "--build-lib", folder, "--build-temp", folder]
        script = (
            "from setuptools import Extension, setup\n"
            f"setup(name='c', ext_modules=[{extension}], script_args={arguments!r})"
        )
        process = subprocess.run(
            [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True
        )
        built = [*Path(folder).glob(f"{name}.*{out.suffix}")]
        if process.returncode or not built:
            return (process.stderr or process.stdout).strip() or "nothing was built"
        shutil.copyfile(built[0], out)
    return ""


class Accelerator(Hook):  # type: ignore[misc,valid-type]  # a plain class as a script
    """Adds the built file to the wheel; of an editable installation, to the checkout."""

    PLUGIN_NAME = "custom"
    _made: Path | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build before the wheel is put together."""
        root, editable = Path(self.root), version == "editable"
        self._made = None if editable else Path(tempfile.mkdtemp())
        for source, variable in SOURCES.items():
            if os.environ.get(variable) == "0":
                continue
            out = (self._made or root) / target(source)
            out.parent.mkdir(parents=True, exist_ok=True)
            reason = build(root, source, out)
            if reason:
                self.app.display_warning(f"{source} is not used: {reason}")
            elif not editable:
                build_data["pure_python"] = False
                build_data["infer_tag"] = True
                build_data["force_include"][str(out)] = target(source)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was built for the wheel alone."""
        if self._made is not None:
            shutil.rmtree(self._made, ignore_errors=True)


if __name__ == "__main__":
    checkout = Path(__file__).parents[1]
    for name in SOURCES:
        problem = build(checkout, name, checkout / target(name))
        print(f"{name} is not used: {problem}" if problem else f"built {target(name)}")
