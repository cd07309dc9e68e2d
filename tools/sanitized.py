"""Run the tests of what is in C on builds that AddressSanitizer watches: `make test-asan`.

Run: python tools/sanitized.py [arguments of pytest]

That are the tracer's accelerator, the simulator's passes over intervals, pva's over traces and its
objects.
Where there is no compiler, or none with its library, it says so and runs nothing: there all is
Python.

The builds and a virtual environment of its own stand in `build/asan`: there `pvti._accelerator`,
`simulator.graph._kernels`, `pva._kernels` and `pva.model._rows` are the watched ones, in each
process that a test starts. All else is that of this Python.
"""

from __future__ import annotations

import os
import shlex
import shutil
import site
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from build_accelerator import SOURCES, build

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "asan"
FLAGS = "-g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all"
# Python itself leaks by design; small quarantines, as tests of memory measure the process.
OPTIONS = "detect_leaks=0:quarantine_size_mb=8:allocator_may_return_null=1:handle_segv=0"
# All that record with it. What measures memory would measure the sanitizer's, and a child that is
# forked while threads run waits for ever for a lock of the sanitizer's own.
TESTS = (
    "accelerator", "crashes", "endings", "faults", "file", "instrument",
    "locks", "names", "processes", "ring", "series", "signals", "tasks", "tracepoint",
)  # fmt: skip
KERNELS = (
    "tests/simulator_front/test_interval_kernels.py",
    "tests/simulator_back/test_summed_copies.py",
    "tests/formats/test_trace_kernels.py",
    "tests/formats/test_json_numbers.py",
    "tests/formats/test_checksum.py",
    "tests/analysis/test_level_of_detail.py",
    "tests/analysis/test_stepped_columns.py",
    "tests/pva/test_rows.py",
    "tests/pva/test_views_as_lists.py",
)
NOT_HERE = "memory or without_it or fork or child"
FINDER = """
import importlib.util, sys
class Watched:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in {libraries!r}:
            return importlib.util.spec_from_file_location(name, {libraries!r}[name])
sys.meta_path.insert(0, Watched)
"""


def sanitizer() -> str:
    """Name the library that must be loaded before all others; empty where there is none."""
    linker = os.environ.get("LDSHARED") or sysconfig.get_config_var("LDSHARED") or "cc"
    for compiler in (shlex.split(linker)[0], "cc"):
        if shutil.which(compiler):
            command = [compiler, "-print-file-name=libasan.so"]
            answer = subprocess.run(command, capture_output=True, text=True, check=False)
            if os.path.isabs(answer.stdout.strip()):
                return os.path.realpath(answer.stdout.strip())
    return ""


def make_environment(libraries: dict[str, str]) -> Path:
    """Make a virtual environment that finds these files as the modules; give its Python."""
    venv.create(FOLDER, clear=True, symlinks=True)
    packages = next(FOLDER.glob("lib/python*/site-packages"))
    (packages / "watched.py").write_text(FINDER.format(libraries=libraries))
    lines = "".join(f"import site; site.addsitedir({path!r})\n" for path in site.getsitepackages())
    (packages / "watched.pth").write_text(f"import watched\n{lines}")
    return FOLDER / "bin" / "python"


def main() -> int:
    """Build, check that the watched build is in use, and run the tests."""
    preloaded = sanitizer()
    if not preloaded:
        print("test-asan: not run: no C compiler with libasan here (Debian: apt install gcc)")
        return 0
    modules = {source.removesuffix(".c").replace("/", "."): source for source in SOURCES}
    libraries = {name: str(FOLDER / "lib" / f"{name}.so") for name in modules}
    python = make_environment(libraries)
    for name, library in libraries.items():
        if reason := build(ROOT, modules[name], Path(library), FLAGS):
            print(f"test-asan: {modules[name]} cannot be built: {reason}")
            return 1
    reports = FOLDER / "report"
    environment = os.environ | {
        "LD_PRELOAD": preloaded, "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": f"{OPTIONS}:log_path={reports}",
        "UBSAN_OPTIONS": f"print_stacktrace=1:log_path={reports}",
    }  # fmt: skip
    check = "import importlib, sys; _, name, file = sys.argv\n"
    check += "sys.exit(importlib.import_module(name).__file__ != file)"
    for pair in libraries.items():
        subprocess.run([python, "-c", check, *pair], cwd=ROOT, env=environment, check=True)
    tests = [f"tests/pvti/test_pvti_{name}.py" for name in TESTS] + [*KERNELS]
    command = [python, "-m", "pytest", "-q", "-k", f"not ({NOT_HERE})", *tests, *sys.argv[1:]]
    failed = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    written = sorted(FOLDER.glob("report.*"))
    for report in written[:3]:
        print(report.read_text(errors="replace"))
    return failed or bool(written)


if __name__ == "__main__":
    sys.exit(main())
