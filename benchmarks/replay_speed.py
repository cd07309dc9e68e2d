"""Replay a million requests: mean wait beside the formula for M/D/1, and how long it takes.

    python -m benchmarks.replay_speed [--requests 1000000]

The wait of single requests at one server with a fixed service time S and load r is, on average,
S r / (2 (1 - r)) (Pollaczek and Khinchine). Goals: within 1 %, and less than 5 s of the processor,
in each of the loads and batchings below.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from pva.queueing.replay import Arrivals, Device, Outcome, replay
from pva.queueing.rules import Policy, Rules

SERVICE, SECONDS, ERROR = 1_000_000, 5.0, 0.01
LOADS = (0.2, 0.5, 0.7)
BATCHED = {
    "batches of 32, no delay": Rules(32, True),
    "batches of 32, preferred 8, delay 0.5 ms": Rules(32, True, (8,), 500_000),
    "batches of 32, delay 5 ms": Rules(32, True, (), 5_000_000),
    "the same with 2 priorities and at most 100 waiting": Rules(
        32, True, (), 5_000_000, 2, 1, Policy(most_waiting=100)
    ),
}


def arrivals(requests: int, load: float) -> Arrivals:
    """Return arrivals of a Poisson process of so many rows in a service time."""
    gaps = np.random.default_rng(30).exponential(SERVICE / load, requests)
    return Arrivals(np.cumsum(np.rint(gaps).astype(np.int64)), np.ones(requests, np.int64))


def timed(given: Arrivals, rules: Rules, device: Device) -> tuple[Outcome, float]:
    """Return what a replay gives, and the seconds of the processor that it takes."""
    begin = time.process_time()
    outcome = replay(given, rules, device)
    return outcome, time.process_time() - begin


def main() -> None:
    """Print the tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1_000_000)
    requests = parser.parse_args().requests
    print(f"| {requests:,} single requests, load | mean wait / S | formula | error | s | |")
    print("| ---: | ---: | ---: | ---: | ---: | --- |")
    for load in LOADS:
        given = arrivals(requests, load)
        outcome, seconds = timed(given, Rules(), Device(SERVICE))
        wait = float((outcome.sent_ns - given.at_ns).mean()) / SERVICE
        formula = load / (2 * (1 - load))
        error = abs(wait / formula - 1)
        met = "met" if error <= ERROR and seconds < SECONDS else "missed"
        print(f"| {load} | {wait:.4f} | {formula:.4f} | {error:.2%} | {seconds:.2f} | {met} |")
    print(f"\n| {requests:,} requests, 8 a service time | batches | s | |")
    print("| --- | ---: | ---: | --- |")
    for name, rules in BATCHED.items():
        outcome, seconds = timed(arrivals(requests, 8), rules, Device(SERVICE, 16))
        met = "met" if seconds < SECONDS else "missed"
        print(f"| {name} | {len(outcome.batch_rows):,} | {seconds:.2f} | {met} |")


if __name__ == "__main__":
    main()
