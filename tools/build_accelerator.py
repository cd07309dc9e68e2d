"""Build pvti's C accelerator with the wheel, where there is a compiler; else the wheel is Python.

As a script it builds into the checkout: `python tools/build_accelerator.py`.
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

SOURCE = "pvti/_accelerator.c"


def target() -> str:
    """Name the file to be built, from the root of the checkout."""
    return f"pvti/_accelerator{sysconfig.get_config_var('EXT_SUFFIX')}"


def build(root: Path, out: Path, flags: str = "") -> str:
    """Build it as `out`, with more flags; give why it was not built, empty when it was."""
    linker = sysconfig.get_config_var("LDSHARED")
    if not linker or sysconfig.get_config_var("Py_GIL_DISABLED") or sys.byteorder == "big":
        return "not for this Python"
    part = out.with_suffix(".part")  # a program that runs may have `out` loaded
    options = shlex.split(f"{sysconfig.get_config_var('CCSHARED') or ''} -O2 {flags}")
    options += [f"-I{sysconfig.get_paths()['include']}", SOURCE, "-o", str(part)]
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


class Accelerator(Hook):  # type: ignore[misc,valid-type]  # a plain class as a script
    """Adds the built file to the wheel; of an editable installation, to the checkout."""

    PLUGIN_NAME = "custom"
    _made: Path | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build before the wheel is put together."""
        if os.environ.get("PVTI_ACCELERATOR") == "0":
            return
        root = Path(self.root)
        editable = version == "editable"
        out = root / target() if editable else Path(tempfile.mkdtemp()) / Path(target()).name
        self._made = None if editable else out.parent
        reason = build(root, out)
        if reason:
            self.app.display_warning(f"pvti stays in Python: {reason}")
        elif not editable:
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
            build_data["force_include"][str(out)] = target()

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was built for the wheel alone."""
        if self._made is not None:
            shutil.rmtree(self._made, ignore_errors=True)


if __name__ == "__main__":
    checkout = Path(__file__).parents[1]
    problem = build(checkout, checkout / target())
    print(f"pvti stays in Python: {problem}" if problem else f"built {target()}")
