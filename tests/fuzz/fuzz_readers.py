"""`python -m tests.fuzz.fuzz_readers [OPTIONS OF LIBFUZZER]`: spoil files as coverage guides it.

Needs atheris. Each input is either the bytes of a file, or the choices by which a valid file is
spoilt in the ways of `tests.fuzz.mutations`; all of the report is walked. Ends with a report of the
first fault: what was raised that is no PvaError, where, and a file with the input. For an hour:
`python -m tests.fuzz.fuzz_readers -max_total_time=3600 -rss_limit_mb=1024 -timeout=10 CORPUS`.
"""

from __future__ import annotations

import random
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import atheris

# The instrumentation keeps every large text that is cut or compared in json_pieces for ever.
with atheris.instrument_imports(include=["pva"], exclude=["pva.formats.traces.json_pieces"]):
    from tests.fuzz.mutations import spoilt
    from tests.fuzz.seeds import Seed, seeds
    from tests.fuzz.walk import walk

FIRST_INPUTS, INPUT_BYTES = 64, 512
RAW = ("x.pop", "x.json", "x.cbor", "debug.cbor", "x.pvti", "x.trace", "x.gz")


class FoundError(Exception):
    """Something was raised that is no PvaError."""


def spoil(data: bytes) -> None:
    """Walk the file that an input stands for."""
    choices: Any = atheris.FuzzedDataProvider(data)
    if choices.ConsumeBool():
        name = choices.PickValueInList(list(RAW))
        seed = Seed(name, {name: choices.ConsumeBytes(len(data))}, name)
    else:
        known = seeds()
        seed = known[choices.ConsumeIntInRange(0, len(known) - 1)]
        seed = spoilt(seed, lambda count: choices.ConsumeIntInRange(0, count - 1))
    with tempfile.TemporaryDirectory() as directory:
        faults = walk(seed.write(Path(directory) / "report")).faults
    if faults:
        raise FoundError("; ".join(faults))


def main() -> None:
    """Run until libFuzzer ends it, from inputs in the folders named, or from some at random."""
    warnings.simplefilter("error")
    seeds()
    with tempfile.TemporaryDirectory() as corpus:
        given = sys.argv[1:]
        if all(argument.startswith("-") for argument in given):
            generator = random.Random(0)
            for number in range(FIRST_INPUTS):
                (Path(corpus) / str(number)).write_bytes(generator.randbytes(INPUT_BYTES))
            given.append(corpus)
        atheris.Setup([sys.argv[0], "-len_control=0", "-max_len=4096", *given], spoil)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
