"""Write the repository of `test_tritonclient.py`: python -m tests.triton.repository DIR."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.serving.small_models import (
    SYNCHRONOUS,
    TYPES,
    compile_identity,
    compile_linear,
    write_model,
)

BATCHING = "dynamic_batching { max_queue_delay_microseconds: 500 }\n"
SLOW = 'parameters { key: "execute_delay_ms" value { string_value: "50" } }\n'


def main(repository: Path) -> None:
    """Write `linear`, `slow` and an identity of each type."""
    folder = write_model(repository, "linear", BATCHING, instances=2)
    compile_linear(folder / "1")
    compile_linear(write_model(repository, "slow", SYNCHRONOUS + SLOW) / "1")
    for onnx, kind in (*TYPES.items(), ("FLOAT", "BF16")):
        name = f"identity_{kind.lower()}"
        folder = write_model(repository, name, kind=kind, inner=3)
        compile_identity(folder / "1", onnx)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
