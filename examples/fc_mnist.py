"""Train one batch of the user guide's sample network in the simulator and write its report.

tilescope simulate examples/fc_mnist.py --out report
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from simulator.examples import fc_mnist
from simulator.poplar import PoplarError


def main() -> int:
    """Read the command line, train, say what came out."""
    parser = argparse.ArgumentParser(description="Train one batch of a two-layer network.")
    parser.add_argument("--out", type=Path, default=Path("fc_mnist_report"))
    parser.add_argument("--target", default="mk1", help="mk1, mk2, bow or tiny")
    arguments = parser.parse_args()
    try:
        result = fc_mnist.run(target=arguments.target, out=arguments.out)
    except PoplarError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    right = f"{result.correct} of {len(result.losses)} images named rightly"
    print(f"loss {result.losses.mean():.4f} an image, {right}; report in {result.report}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
