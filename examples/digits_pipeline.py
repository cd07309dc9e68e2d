"""Train a small transformer on two IPUs in a pipeline, as `tilescope demo` does; write its report.

tilescope simulate examples/digits_pipeline.py --even --out report
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from simulator.poplar import PoplarError


def main() -> int:
    """Read the command line, train, say what came out."""
    parser = argparse.ArgumentParser(description="Train a transformer on the digits.")
    parser.add_argument("--out", type=Path, default=Path("digits_pipeline_report"))
    parser.add_argument("--even", action="store_true", help="an attention on each IPU")
    parser.add_argument("--epochs", type=int)
    arguments = parser.parse_args()
    try:
        from simulator.examples import digits_pipeline

        trained = digits_pipeline.train(
            arguments.out,
            placed=digits_pipeline.EVEN if arguments.even else digits_pipeline.CROWDED,
            epochs=arguments.epochs or digits_pipeline.EPOCHS,
            progress=lambda done, total, text: print(f"[{done}/{total}] {text}", flush=True),
        )
        accuracy = digits_pipeline.accuracy(trained)
    except PoplarError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"test accuracy {accuracy:.1%}, report in {trained.report}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
