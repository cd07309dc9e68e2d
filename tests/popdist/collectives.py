"""A program for instances: add up over all, and then have the last one do something else.

python collectives.py hang|end|other|fail
"""

from __future__ import annotations

import sys
import time

import numpy as np

from simulator import popdist
from simulator.graph.types import Array
from simulator.instances.share import Place, Share

HERE, COUNT = popdist.getInstanceIndex(), popdist.getNumInstances()


def summed(share: Share, step: int, name: str) -> Array:
    """Add up over all instances, a power of two, in rounds."""
    total, rounds = np.full(3, HERE + 1.0), COUNT.bit_length() - 1
    for number in range(rounds):
        pairs = {replica: replica ^ (1 << number) for replica in range(COUNT)}
        total = total + share.exchange(Place(step, "train", number + 1, name), pairs, [total])[HERE]
    return total


def main(last: str) -> int:
    """Add up twice; the last instance does as it is told the second time."""
    share = Share(HERE, 1)
    assert summed(share, 0, "w").tolist() == [COUNT * (COUNT + 1) / 2] * 3
    if HERE == COUNT - 1:
        if last == "hang":
            time.sleep(60)
        if last == "end":
            return 0
        if last == "fail":
            return 3
    summed(share, 1, "v" if last == "other" and HERE == COUNT - 1 else "w")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
