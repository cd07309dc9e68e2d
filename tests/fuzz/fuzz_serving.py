"""`python -m tests.fuzz.fuzz_serving [OPTIONS OF LIBFUZZER]`: spoil what a server reads.

Needs atheris. Traces of Triton, config.pbtxt and calls of HTTP, whichever an input chooses.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import atheris

from tests.fuzz.executables import compiled

compiled()  # with the codelets as they are: what is instrumented is no longer their code
with atheris.instrument_imports():
    import pva.formats.traces.triton_trace  # noqa: F401
    import simulator.serving.kserve.http
    import simulator.serving.model_config  # noqa: F401

from tests.fuzz.served import KINDS  # noqa: E402


class FoundError(Exception):
    """Something was raised that is no error of one line."""


def spoil(data: bytes) -> None:
    """Read what an input stands for."""
    choices: Any = atheris.FuzzedDataProvider(data)

    def below(count: int) -> int:
        return int(choices.ConsumeIntInRange(0, count - 1))

    kind = KINDS[list(KINDS)[below(len(KINDS))]]
    if found := kind.fault(kind.spoilt(below)):
        raise FoundError(found)


def main() -> None:
    """Run until libFuzzer ends it."""
    warnings.simplefilter("error")
    atheris.Setup([sys.argv[0], "-len_control=0", "-max_len=4096", *sys.argv[1:]], spoil)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
