"""Casts between floats of the machine and floats of any size (popfloat's "gfloat").

Values: a format has a sign, E exponent bits with a bias and M mantissa bits; without exponent bits
it is of whole multiples of its smallest number. Cycles: PopLibs
lib/popfloat/popfloatCycleEstimators.cpp and codelets/popfloatCycleCount.hpp, which count all
elements of a tile in one row. Rounding takes none of them there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.random.vertices import words_of_elements
from simulator.codelets.vertex_type import VertexTypes, supervisor, worker
from simulator.graph.machine.target import Target
from simulator.graph.types import FLOAT, HALF, Array, IntArray, Type
from simulator.graph.vertices.vertex import Codelet, Operands

SPACE = "popfloat::experimental::"
CYCLES = "PopLibs lib/popfloat/popfloatCycleEstimators.cpp"


@dataclass(frozen=True, slots=True)
class Format:
    """A format of numbers: its mantissa and exponent bits, its bias, and what else it has."""

    mantissa: int
    exponent: int
    bias: int
    denormals: bool
    infinities: bool

    @property
    def fixed(self) -> bool:
        """Return whether all numbers are multiples of the smallest."""
        return self.exponent == 0 or (self.exponent == 1 and self.infinities)

    @property
    def step(self) -> float:
        """Return the distance of the smallest numbers."""
        return float(2.0 ** (1 - self.bias - self.mantissa))

    @property
    def largest(self) -> float:
        """Return the largest number."""
        if self.fixed:
            return float((2**self.mantissa - 1) * self.step)
        top = 2**self.exponent - 1 - self.bias - self.infinities
        return float((2 - 2.0**-self.mantissa) * 2.0**top)


@dataclass(frozen=True, slots=True)
class Rounding:
    """How a number between two of a format is rounded: `mode` as popfloat's RoundType.

    SR adds noise from 0 to 1 of the distance, of so many `bits`, and cuts off; SX takes it from
    `least` to `most`. With `nan` a number that is too large becomes NaN, else the largest.
    """

    mode: str
    bits: int = 24
    least: float = 0.0
    most: float = 1.0
    nan: bool = False


def rounded(values: Array, form: Format, rounding: Rounding, noise: Array) -> Array:
    """Round float64 values to a format; NaN stays, and infinities where the format has them."""
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.abs(values)
        exponent = np.frexp(size)[1] - 1
        lowest = 1 - form.bias
        exponent = np.full_like(exponent, lowest) if form.fixed else np.maximum(exponent, lowest)
        step = np.ldexp(1.0, exponent - form.mantissa)
        parts = size / step
        down = np.floor(parts)
        fraction, negative = parts - down, np.signbit(values)
        up = {
            "RZ": np.zeros_like(fraction, dtype=bool),
            "RA": fraction >= 0.5,
            "RN": (fraction > 0.5) | ((fraction == 0.5) & (down % 2 == 1)),
            "RU": (fraction > 0) & ~negative,
            "RD": (fraction > 0) & negative,
        }.get(rounding.mode, fraction + noise >= 1)
        result = (down + up) * step
        if not form.denormals and not form.fixed:
            result = np.where(result < 2.0**lowest, 0, result)
        over = np.nan if rounding.nan and form.infinities else form.largest
        result = np.where(result > form.largest, over, result)
        if form.infinities:
            result = np.where(np.isinf(values) & (not rounding.nan), np.inf, result)
        result = np.where(np.isnan(values), np.nan, result)
    signed: Array = np.copysign(result, values)
    return signed


def packed(values: Array, form: Format, bits: int) -> Array:
    """Return rounded values as signed integers: sign, exponent, and the mantissa at the left."""
    room = bits - 1 - form.exponent
    size, odd = np.abs(values), ~np.isfinite(values)
    safe = np.where(odd, 0, size)
    exponent = np.frexp(safe)[1] - 1
    normal = (safe >= 2.0 ** (1 - form.bias)) & (not form.fixed)
    field = np.where(normal, exponent + form.bias, 0)
    base = np.where(normal, np.ldexp(1.0, exponent), 0.0)
    scale = np.where(normal, exponent, 1 - form.bias) - room
    mantissa = np.rint(np.ldexp(safe - base, -scale)).astype(np.int64)
    top = 2**form.exponent - 1
    field = np.where(odd, top, field)
    mantissa = np.where(np.isnan(values), 1 << max(room - 1, 0), np.where(odd, 0, mantissa))
    number = (np.signbit(values).astype(np.int64) << (bits - 1)) | (field << room) | mantissa
    return np.where(number >= 1 << (bits - 1), number - (1 << bits), number)


def unpacked(numbers: Array, form: Format, bits: int) -> Array:
    """Return the values of packed numbers."""
    room = bits - 1 - form.exponent
    word = numbers.astype(np.int64) & ((1 << bits) - 1)
    mantissa, field = word & ((1 << room) - 1), (word >> room) & (2**form.exponent - 1)
    normal = (field > 0) & (not form.fixed)
    scale = np.where(normal, field - form.bias, 1 - form.bias)
    values = np.ldexp(mantissa / 2.0**room + normal, scale)
    if form.infinities and not form.fixed:
        top = field == 2**form.exponent - 1
        values = np.where(top, np.where(mantissa > 0, np.nan, np.inf), values)
    signed: Array = np.copysign(values, np.where(word >> (bits - 1), -1.0, 1.0))
    return signed


# Cycles
def to_small(n: IntArray, source: Type, destination: Type) -> IntArray:
    """20 + 38 for 4 floats, 44 for 4 halves, of the tile; of packed bytes 27: lines 89-147.

    The names of the public counts of floats and halves are as they stand there.
    """
    loop = 1 + (7 if source == FLOAT else 6 + 7) + 4 + 8 + 7 + 5 + 6
    start = 15 + (4 + 8 if destination.size == 1 else 5)
    return start + loop * ceil_div(n, 4)


def to_large(n: IntArray, destination: Type) -> IntArray:
    """35 + 27 for 2 floats, of the tile; into other types 46 + 29: lines 200-236."""
    real = destination == FLOAT
    return 35 + (0 if real else 11) + (7 + 7 + 10 + (3 if real else 5)) * ceil_div(n, 2)


def from_byte(n: IntArray, form: str) -> IntArray:
    """14 + 5 for 4 numbers of format 1/5/2, 17 or 23 of others, of the tile: lines 20-45."""
    loop = {"ONE_FIVE_TWO_GF8": 5, "MAX_NORM_ALIGN_GF8": 8 + 9}.get(form, 8 + 15)
    return 14 + loop * ceil_div(n, 4)


def from_short(n: IntArray, form: str) -> IntArray:
    """25 + 3 for 2 numbers of bfloat16, 24 or 25 of others, of the tile: lines 47-72."""
    loop = {"BFLOAT16": 3, "NO_DENORM_GF16": 9 + 15}.get(form, 9 + 16)
    return 25 + loop * ceil_div(n, 2)


def parameters_of(vertices: IntArray, source: Type) -> IntArray:
    """102, of a calculation in floats 57, a worker: lines 74-87, 168-183."""
    return np.full_like(vertices, 85 + 9 + 8 if source == HALF else 50 + 7)


_OURS = f"our estimate, from the other casts of {CYCLES}"
TYPES = VertexTypes(
    (
        *(
            supervisor(f"{SPACE}{name}", fields, cycles, source, sizes, exact=exact)
            for name, fields, cycles, source, sizes, exact in (
                ("CastToGfloat16Supervisor<in,out,nanoo,round>", "param in out", to_small, CYCLES,
                 (20, 360), True),
                ("CastToGfloat16InPlaceSupervisor<in,nanoo,round>", "param inOut", to_small, _OURS,
                 (16, 340), False),
                ("CastToGfloat32Supervisor<in,out,nanoo,round>", "param in out", to_large, CYCLES,
                 (20, 380), True),
                ("CastToGfloat32InPlaceSupervisor<in,nanoo,round>", "param inOut", to_large, _OURS,
                 (16, 360), False),
                ("CastGf8ToHalfSupervisor<format>", "param in out", from_byte, CYCLES,
                 (20, 240), True),
                ("CastGf8ToFloatSupervisor", "param in out", from_byte, _OURS, (20, 260), False),
                ("CastGf16ToFloatSupervisor<format>", "param in out", from_short, CYCLES,
                 (20, 260), True),
            )
        ),
        *(
            worker(
                f"{SPACE}{name}", "gfStruct param", parameters_of, CYCLES, (12, 300)
            )
            for name in ("CastToGfloat16Param", "CastToGfloat32Param")
        ),
    )
)  # fmt: skip


@cache
def to_format(
    name: str, form: Format, rounding: Rounding, target: Target, out: Type, *, in_place: bool
) -> Codelet:
    """Return the supervisor that rounds to a format, in the machine's floats or packed."""
    read, written = ("inOut", "inOut") if in_place else ("in", "out")

    def compute(operands: Operands) -> dict[str, Array]:
        values, noise = operands.arrays[read].astype(np.float64), np.zeros(1)
        if rounding.mode in ("SR", "SX"):
            counts = operands.counts | {"out": operands.counts[read]}
            drawn = Operands(operands.group, operands.arrays, counts, operands.prepared,
                             operands.registers)  # fmt: skip
            words = words_of_elements(drawn, target, out, 1)[0]
            taken = min(max(rounding.bits, 1), 32)
            share = (words >> np.uint32(32 - taken)) / 2.0**taken
            noise = rounding.least + share * (rounding.most - rounding.least)
        result = rounded(values, form, rounding, noise)
        if out.numpy.kind != "f":
            result = packed(result, form, 8 * out.size)
        return {written: result.astype(out.numpy)}

    return TYPES.codelet(f"{SPACE}{name}", compute)


@cache
def from_format(name: str, form: Format, source: Type, out: Type) -> Codelet:
    """Return the supervisor that unpacks numbers of a format."""

    def compute(operands: Operands) -> dict[str, Array]:
        values = unpacked(operands.arrays["in"], form, 8 * source.size)
        return {"out": values.astype(out.numpy)}

    return TYPES.codelet(f"{SPACE}{name}", compute)


@cache
def parameter_codelet(source: Type) -> Codelet:
    """Return the worker that works the parameters of a cast out of those of a format."""

    def compute(operands: Operands) -> dict[str, Array]:
        size = int(operands.counts["param"][0])
        return {"param": np.repeat(operands.arrays["gfStruct"], size)}

    bits = "16" if source == HALF else "32"
    return TYPES.codelet(f"{SPACE}CastToGfloat{bits}Param", compute)
