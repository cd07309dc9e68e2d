"""`python -m tests.fuzz.fuzz_popef [OPTIONS OF LIBFUZZER]`: spoil PopEF files.

Needs atheris. As `tests.fuzz.fuzz_executables`, for the files that `popef.Reader` reads.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import atheris

from tests.fuzz.executables import compiled

compiled()  # with the codelets as they are: what is instrumented is no longer their code
with atheris.instrument_imports():
    import simulator.popef.dump
    import simulator.popef.facts  # noqa: F401

from tests.fuzz.popefs import fault, seed, spoilt  # noqa: E402

seed()


class FoundError(Exception):
    """Something was raised that is no error of one line."""


def spoil(data: bytes) -> None:
    """Read the file that an input stands for."""
    choices: Any = atheris.FuzzedDataProvider(data)
    if choices.ConsumeBool():
        body = seed()[:8] + choices.ConsumeBytes(len(data))
    else:
        body = spoilt(lambda count: choices.ConsumeIntInRange(0, count - 1))
    if found := fault(body):
        raise FoundError(found)


def main() -> None:
    """Run until libFuzzer ends it."""
    warnings.simplefilter("error")
    atheris.Setup([sys.argv[0], "-len_control=0", "-max_len=4096", *sys.argv[1:]], spoil)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
