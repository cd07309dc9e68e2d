"""Train the digits network in the simulator and write its report.

python examples/mlp_digits.py --out report
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from simulator.examples import mlp_digits
from simulator.poplar import PoplarError


def main() -> int:
    """Read the command line, train, say what came out."""
    parser = argparse.ArgumentParser(description="Train the digits network in the simulator.")
    parser.add_argument("--out", type=Path, default=Path("mlp_digits_report"))
    parser.add_argument("--target", default="mk2", help="mk1, mk2, bow or tiny")
    parser.add_argument("--epochs", type=int, default=mlp_digits.EPOCHS)
    arguments = parser.parse_args()
    try:
        result = mlp_digits.train(
            arguments.out,
            target=arguments.target,
            epochs=arguments.epochs,
            progress=lambda done, total, text: print(f"[{done}/{total}] {text}", flush=True),
        )
    except PoplarError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"test accuracy {result.accuracy:.1%}, report in {result.report}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
