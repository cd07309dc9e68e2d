"""What if the delay, the preferred size or the number of instances were another?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

from pva.errors import PvaError, nearest
from pva.lazy import pandas as pd
from pva.queueing.figures import Figures, figures
from pva.queueing.replay import Arrivals, Device, Outcome, replay
from pva.queueing.rules import Rules

UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
MAX_VARIANTS, MAX_INSTANCES, LONGEST_NS = 1_000, 10_000, 10**15


@dataclass(frozen=True, slots=True)
class Variant:
    """One choice: rules and a device. `configured` is the one that the model has."""

    rules: Rules
    device: Device
    configured: bool = False

    @property
    def preferred(self) -> str:
        """Write the preferred sizes: `8+32`, or nothing."""
        return "+".join(map(str, sorted(self.rules.preferred)))


def nanoseconds(text: str) -> int:
    """Read a time such as 500us, 5ms, 1.5s or 0; raises ValueError."""
    number = text.rstrip("nums")
    unit = text[len(number) :]
    if unit not in UNITS and float(number) != 0:
        raise ValueError("a time needs its unit")
    value = float(number) * UNITS.get(unit, 1)
    if not 0 <= value <= LONGEST_NS:
        raise ValueError("beyond what is waited")
    return round(value)


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(sorted(_whole(part) for part in text.split("+"))) if text != "none" else ()


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 1 << 40):
        raise ValueError("no whole number from 1 on")
    return int(text)


# What may be another: how one value is read, what is written.
LEVERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "delay": (nanoseconds, "times, as delay=0,500us,5ms"),
    "preferred": (_sizes, "sizes, as preferred=8,32 or preferred=none,8+32"),
    "instances": (_whole, "numbers, as instances=1,2"),
}


def read_choices(texts: Sequence[str]) -> dict[str, list[object]]:
    """Read `delay=0,500us` and the like; raises PvaError."""
    choices: dict[str, list[Any]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if name not in LEVERS:
            raise PvaError(f"--what-if {text}", f"no lever {name!r}", nearest(name, LEVERS))
        read, remedy = LEVERS[name]
        try:
            choices[name] = [read(value.strip()) for value in values.split(",")]
        except ValueError:
            raise PvaError(
                f"--what-if {text}", "cannot be read" if equals else "no values", remedy
            ) from None
    return choices


def variants(
    rules: Rules, device: Device, choices: Mapping[str, Sequence[object]]
) -> Iterator[Variant]:
    """List the model as it is configured, then each combination of choices that is another.

    A choice of a delay or of a preferred size turns dynamic batching on. Raises PvaError.
    """
    levers = [[(name, value) for value in values] for name, values in choices.items()]
    combinations = list(product(*levers)) if levers else []
    if len(combinations) > MAX_VARIANTS:
        raise PvaError(
            "--what-if", f"{len(combinations):,} combinations", f"at most {MAX_VARIANTS:,}"
        )
    seen = {(rules, device)}
    yield Variant(rules, device, configured=True)
    for combination in combinations:
        one = _changed(rules, device, dict(combination))
        if (one.rules, one.device) not in seen:
            seen.add((one.rules, one.device))
            yield one


def _changed(rules: Rules, device: Device, choice: Mapping[str, Any]) -> Variant:
    batching: dict[str, Any] = {}
    if "delay" in choice or "preferred" in choice:
        batching["dynamic"] = True
    if "delay" in choice:
        batching["delay_ns"] = choice["delay"]
    if "preferred" in choice:
        batching["preferred"] = choice["preferred"]
    instances = choice.get("instances", device.instances)
    if instances > MAX_INSTANCES:
        raise PvaError("--what-if", f"{instances:,} instances", f"at most {MAX_INSTANCES:,}")
    return Variant(replace(rules, **batching), replace(device, instances=instances))


def replayed(
    arrivals: Arrivals,
    variants_in_order: Sequence[Variant],
    progress: Callable[[int, int, str], None] | None = None,
) -> tuple[list[Figures], Outcome]:
    """Replay each variant; return the figures of each, and the outcome of the first."""
    results, first = [], None
    for number, variant in enumerate(variants_in_order):
        outcome = replay(arrivals, variant.rules, variant.device)
        first = first or outcome
        results.append(figures(outcome))
        if progress:
            progress(number + 1, len(variants_in_order), "replaying")
    if first is None:
        raise PvaError("what-if", "no variant", "at least one")
    return results, first


def columns(
    variants_in_order: Sequence[Variant], results: Sequence[Figures]
) -> dict[str, list[object]]:
    """Return columns with a row for each variant: its levers, and its figures."""
    rows: list[dict[str, object]] = [
        {
            "delay_ns": variant.rules.delay_ns, "preferred": variant.preferred,
            "instances": variant.device.instances, "dynamic": variant.rules.dynamic,
            "configured": variant.configured, **asdict(result),
        }
        for variant, result in zip(variants_in_order, results, strict=True)
    ]  # fmt: skip
    return {name: [row[name] for row in rows] for name in rows[0]}


def table(variants_in_order: Sequence[Variant], results: Sequence[Figures]) -> pd.DataFrame:
    """Return the same as a DataFrame."""
    return pd.DataFrame(columns(variants_in_order, results))
