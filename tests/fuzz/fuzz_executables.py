"""`python -m tests.fuzz.fuzz_executables [OPTIONS OF LIBFUZZER]`: spoil files of executables.

Needs atheris. As `tests.fuzz.fuzz_readers`, for the file that `Executable.deserialize` reads.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import atheris

from tests.fuzz.executables import compiled, fault, seed, spoilt

compiled()  # with the codelets as they are: what is instrumented is no longer their code
with atheris.instrument_imports():
    import simulator.executable_file
    import simulator.object_file  # noqa: F401


class FoundError(Exception):
    """Something was raised that is no PoplarError of one line."""


def spoil(data: bytes) -> None:
    """Read the file that an input stands for."""
    choices: Any = atheris.FuzzedDataProvider(data)
    if choices.ConsumeBool():
        body = choices.ConsumeBytes(len(data))
    else:
        body = spoilt(lambda count: choices.ConsumeIntInRange(0, count - 1))
    if found := fault(body):
        raise FoundError(found)


def main() -> None:
    """Run until libFuzzer ends it."""
    warnings.simplefilter("error")
    seed()
    atheris.Setup([sys.argv[0], "-len_control=0", "-max_len=4096", *sys.argv[1:]], spoil)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
