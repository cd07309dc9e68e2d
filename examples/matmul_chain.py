"""Multiply a chain of matrices in the simulator and write its report.

python examples/matmul_chain.py --shapes 800x500 500x400 400x200 --target mk2 --out report
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from simulator.examples import matmul_chain
from simulator.poplar import PoplarError


def main() -> int:
    """Read the command line, multiply, compare with NumPy."""
    parser = argparse.ArgumentParser(description="Multiply a chain of matrices in the simulator.")
    parser.add_argument(
        "--shapes", nargs="+", default=["800x500", "500x400", "400x200"], metavar="ROWSxCOLUMNS"
    )
    parser.add_argument("--target", default="mk2", help="mk1, mk2, bow or tiny")
    parser.add_argument("--out", type=Path, default=Path("matmul_chain_report"))
    arguments = parser.parse_args()
    try:
        shapes = matmul_chain.parse_shapes(arguments.shapes)
        result = matmul_chain.run(shapes, target=arguments.target, out=arguments.out)
    except PoplarError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"largest error against NumPy {result.error:.1e}, report in {result.report}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
