"""Floats of any size: formats, roundings and casts (popfloat::experimental)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Self

import numpy as np

from simulator.codelets.formats import small_floats as vertices
from simulator.codelets.formats.small_floats import Format, Rounding
from simulator.graph.errors import poplibs_error
from simulator.graph.geometry.intervals import present
from simulator.graph.graph import ComputeSet, Graph
from simulator.graph.option_table import Option, checked, defaults
from simulator.graph.program import Execute, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, HALF, SHORT, SIGNED_CHAR, UNSIGNED_INT, IntArray, Type
from simulator.graph.vertices.vertex import Codelet, Field, VertexGroup, cut_field, cut_ranges
from simulator.poplibs.codelets import addCodelets as addCodelets
from simulator.poplibs.popops.regions import debug_name, in_memory_order, regions_of

Options = Mapping[str, object] | None
PARAMETERS = {HALF: 26, FLOAT: 20}  # words that the vertices of a cast read
FORMAT_OPTIONS = {
    "numMantissaBits": Option(10, "bits of the mantissa"),
    "numExponentBits": Option(5, "bits of the exponent"),
    "numExponentBias": Option(15, "what is added to exponents"),
    "enableDenorms": Option(True, "numbers below the smallest normal one"),
    "enableInfsAndNans": Option(True, "the largest exponent stands for infinity and NaN"),
}


class RoundType(Enum):
    """How a number between two of a format is rounded."""

    INV = "INV"
    RZ = "RZ"
    RN = "RN"
    RA = "RA"
    RU = "RU"
    RD = "RD"
    SR = "SR"
    SX = "SX"


class SRDensityType(Enum):
    """The noise of stochastic rounding."""

    INVALID = "INVALID"
    UNIFORM = "UNIFORM"
    NORMAL = "NORMAL"
    TRUNCATED_NORMAL = "TRUNCATED_NORMAL"
    BERNOULLI = "BERNOULLI"
    LOGISTIC = "LOGISTIC"
    TRUNCATED_LOGISTIC = "TRUNCATED_LOGISTIC"
    LAPLACE = "LAPLACE"
    TRUNCATED_LAPLACE = "TRUNCATED_LAPLACE"
    LOGIT_NORMAL = "LOGIT_NORMAL"
    TRUNCATED_LOGIT_NORMAL = "TRUNCATED_LOGIT_NORMAL"


class SpecType(Enum):
    """The type in which a cast computes or stores; AUTO is the smallest that does."""

    FP32 = "FP32"
    BF16 = "BF16"
    FP16 = "FP16"
    INT8 = "INT8"
    INT16 = "INT16"
    INT32 = "INT32"
    AUTO = "AUTO"


def roundTypeToString(rmode: RoundType) -> str:
    """Return the name of a rounding.

    >>> from simulator.poplibs.popfloat import experimental
    >>> experimental.roundTypeToString(experimental.RoundType.RN)
    'RN'
    """
    return rmode.name


def srDensityTypeToString(dist: SRDensityType) -> str:
    """Return the name of a noise.

    >>> from simulator.poplibs.popfloat import experimental
    >>> experimental.srDensityTypeToString(experimental.SRDensityType.UNIFORM)
    'UNIFORM'
    """
    return dist.name


def specTypeToString(specType: SpecType) -> str:
    """Return the name of a type of a cast.

    >>> from simulator.poplibs.popfloat import experimental
    >>> experimental.specTypeToString(experimental.SpecType.BF16)
    'BF16'
    """
    return specType.name


class FormatType(Enum):
    """The kind of a format, which decides how it is stored."""

    IEEE_FP16 = "IEEE_FP16"
    QUANTISED_FP32 = "QUANTISED_FP32"
    QUANTISED_FP16 = "QUANTISED_FP16"
    MIN_NORM_ALIGN_GF8 = "MIN_NORM_ALIGN_GF8"
    ONE_FIVE_TWO_GF8 = "ONE_FIVE_TWO_GF8"
    MAX_NORM_ALIGN_GF8 = "MAX_NORM_ALIGN_GF8"
    BFLOAT16 = "BFLOAT16"
    NO_DENORM_GF16 = "NO_DENORM_GF16"
    ENABLE_DENORM_GF16 = "ENABLE_DENORM_GF16"


def formatTypeToString(fmtType: FormatType) -> str:
    """Return the name of a kind of formats.

    >>> from simulator.poplibs.popfloat import experimental
    >>> experimental.formatTypeToString(experimental.FormatType.IEEE_FP16)
    'IEEE_FP16'
    """
    return fmtType.name


CAST_OPTIONS = {
    "roundMode": Option("INV", "how to round", allowed=tuple(RoundType.__members__)),
    "numSRBits": Option(24, "bits of the noise of stochastic rounding"),
    "srNoiseDensity": Option(
        "INVALID", "distribution of the noise", allowed=tuple(SRDensityType.__members__)
    ),
    "srNoiseOffset": Option("0", "taken, and without effect here"),
    "srNoiseScale": Option("0", "taken, and without effect here"),
    "srNoiseMax": Option("0", "largest noise"),
    "srNoiseMin": Option("0", "least noise"),
    "bernoulliProb": Option("0", "taken, and without effect here"),
    "enableNanooMode": Option(True, "numbers that are too large become NaN"),
}
_STORED = {SpecType.FP32: FLOAT, SpecType.FP16: HALF, SpecType.INT8: SIGNED_CHAR,
           SpecType.INT16: SHORT}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FormatConfig:
    """A format, and the types in which it is computed and stored (lib/popfloat/CastToGfloat.cpp).

    `calculationType` is a type, or a SpecType: AUTO, FP32 or FP16.
    """

    numMantissaBits: int
    numExponentBits: int
    exponentBias: int
    enableDenorms: bool = True
    enableInfsAndNans: bool = True
    calculation: Type | SpecType = SpecType.AUTO

    def __post_init__(self) -> None:
        if not 0 <= self.numMantissaBits <= 23 or not 0 <= self.numExponentBits <= 8:
            raise poplibs_error(
                f"FormatConfig: {self.numMantissaBits} mantissa and {self.numExponentBits} "
                "exponent bits; at most 23 and 8 are possible"
            )
        if self.calculation in (SpecType.FP16, HALF) and not self._in_half():
            raise poplibs_error(
                f"FormatConfig: 1/{self.numExponentBits}/{self.numMantissaBits} is not computed in "
                "half; at most 10 mantissa and 5 exponent bits, and not both, are"
            )

    def _in_half(self) -> bool:
        sizes = (self.numMantissaBits, self.numExponentBits)
        return sizes[0] <= 10 and sizes[1] <= 5 and sizes != (10, 5)

    def _bits(self) -> int:
        return 1 + self.numMantissaBits + self.numExponentBits

    @property
    def format(self) -> Format:
        """Return the numbers of the format."""
        infinities = self.enableInfsAndNans and self.numExponentBits > 0
        sizes = (self.numMantissaBits, self.numExponentBits, self.exponentBias)
        return Format(*sizes, self.enableDenorms, infinities)

    def getCalculationType(self) -> Type:
        in_half = self._in_half() and self.calculation not in (SpecType.FP32, FLOAT)
        return HALF if in_half else FLOAT

    def getFormatType(self) -> FormatType:
        if self.getCalculationType() == HALF:
            if self._bits() > 8:
                return FormatType.QUANTISED_FP16
            if self.numExponentBits < 5:
                return FormatType.MIN_NORM_ALIGN_GF8
            infinities = self.enableInfsAndNans
            return FormatType.ONE_FIVE_TWO_GF8 if infinities else FormatType.MAX_NORM_ALIGN_GF8
        if (self.numMantissaBits, self.numExponentBits) == (10, 5) and self.enableInfsAndNans:
            return FormatType.IEEE_FP16
        if self._bits() > 16:
            return FormatType.QUANTISED_FP32
        if self.numExponentBits == 8 and self._bits() > 8:
            return FormatType.BFLOAT16
        denormals = self.enableDenorms or self._bits() <= 8
        return FormatType.ENABLE_DENORM_GF16 if denormals else FormatType.NO_DENORM_GF16

    def getNativeType(self) -> Type:
        in_half = self.getCalculationType() == HALF or self.getFormatType() == FormatType.IEEE_FP16
        return HALF if in_half or (self._bits() <= 8 and self.numExponentBits <= 5) else FLOAT

    def getStorageType(self) -> Type:
        kind = self.getFormatType()
        if kind in (FormatType.IEEE_FP16, FormatType.QUANTISED_FP16):
            return HALF
        if self._bits() <= 8:
            return SIGNED_CHAR
        return FLOAT if kind == FormatType.QUANTISED_FP32 else SHORT

    def getNumMantissaBits(self) -> int:
        return self.numMantissaBits

    def getNumExponentBits(self) -> int:
        return self.numExponentBits

    def getExponentBias(self) -> int:
        return self.exponentBias

    def isDenormEnabled(self) -> bool:
        return self.enableDenorms

    def infAndNansEnabled(self) -> bool:
        return self.format.infinities

    def isBlockFloat(self) -> bool:
        return self.format.fixed

    def getPackedFloatBits(self) -> int:
        return 8 if self._bits() <= 8 else 16 if self.getStorageType().size == 2 else 32

    def getPackedFloatParameters(self) -> int:
        """Return sizes, bias and flags in one word."""
        flags = self.enableDenorms | self.format.infinities << 1
        sizes = self.numMantissaBits | self.numExponentBits << 8 | (self.exponentBias & 255) << 16
        return int(sizes | flags << 24)


@dataclass(frozen=True, slots=True)
class RoundConfig:
    """How a cast rounds. Noise of SX is even between `srNoiseMin` and `srNoiseMax`."""

    roundMode: RoundType
    numSRBits: int = 24
    calculationType: Type = FLOAT
    srNoiseDensity: SRDensityType = SRDensityType.INVALID
    srNoiseOffset: float = 0.0
    srNoiseScale: float = 0.0
    srNoiseMax: float = 0.0
    srNoiseMin: float = 0.0
    bernoulliProb: float = 0.0

    def __post_init__(self) -> None:
        if self.roundMode == RoundType.INV:
            raise poplibs_error("RoundConfig: roundMode is INV; RZ, RN, RA, RU, RD, SR or SX")
        if self.srNoiseDensity not in (SRDensityType.INVALID, SRDensityType.UNIFORM):
            raise poplibs_error(
                f"RoundConfig: noise of density {self.srNoiseDensity.name}; the model has UNIFORM"
            )

    def rounding(self, *, nan: bool) -> Rounding:
        """Return what vertices know of it."""
        even = self.srNoiseDensity == SRDensityType.UNIFORM
        ends = (self.srNoiseMin, self.srNoiseMax) if even else (0.0, 1.0)
        bits = 24 if self.roundMode == RoundType.SR else self.numSRBits
        return Rounding(self.roundMode.name, bits, *ends, nan)

    def getRoundMode(self) -> RoundType:
        return self.roundMode

    def getNumSRBits(self) -> int:
        return self.numSRBits

    def getSRNoiseDensity(self) -> SRDensityType:
        return self.srNoiseDensity


_Format = FormatConfig
_Round = RoundConfig


class GfloatCast:
    """Casts floats of the machine to a format and back.

    Stored as GFType FP32 or FP16 a number stays one of the machine's; INT8 and INT16 pack it, and
    AUTO does what the format's storage type says.
    """

    FormatConfig = FormatConfig
    RoundConfig = RoundConfig

    def __init__(
        self,
        formatCfg: _Format,
        roundCfg: _Round,
        enableNanooMode: bool = True,
        GFType: SpecType = SpecType.AUTO,
        NativeType: SpecType = SpecType.AUTO,
    ) -> None:
        self._format, self._round = formatCfg, roundCfg
        self._nanoo = bool(enableNanooMode)
        self._stored = _type_of(GFType, formatCfg.getStorageType(), "GFType")
        self._native = _type_of(NativeType, formatCfg.getNativeType(), "NativeType")
        if self._native not in (FLOAT, HALF):
            raise poplibs_error(f"GfloatCast: NativeType is {NativeType.name}; FP32 or FP16")
        if 8 * self._stored.size < formatCfg._bits() and self._stored.numpy.kind != "f":
            raise poplibs_error(
                f"GfloatCast: GFType is {GFType.name}, of {8 * self._stored.size} bits; the format "
                f"has {formatCfg._bits()}"
            )
        self._params: Tensor | None = None

    @classmethod
    def fromOptions(
        cls, formatOptions: Options, castOptions: Options, calculationType: Type, *types: SpecType
    ) -> Self:
        """Build a cast by option flags; raises InvalidOptionError and poplibs_error."""
        form: dict[str, Any] = defaults(
            FORMAT_OPTIONS, checked(FORMAT_OPTIONS, formatOptions or {}, "GfloatCast")
        )
        cast: dict[str, Any] = defaults(
            CAST_OPTIONS, checked(CAST_OPTIONS, castOptions or {}, "GfloatCast")
        )
        config = _Format(
            form["numMantissaBits"],
            form["numExponentBits"],
            form["numExponentBias"],
            form["enableDenorms"],
            form["enableInfsAndNans"],
            calculationType,
        )
        rounds = _Round(
            RoundType[cast["roundMode"]],
            cast["numSRBits"],
            calculationType,
            SRDensityType[cast["srNoiseDensity"]],
            srNoiseMax=float(cast["srNoiseMax"]),
            srNoiseMin=float(cast["srNoiseMin"]),
        )
        return cls(config, rounds, bool(cast["enableNanooMode"]), *types)

    def getFormatConfig(self) -> _Format:
        return self._format

    def getGFStorageType(self) -> Type:
        return self._stored

    def getNativeStorageType(self) -> Type:
        return self._native

    def getCalculationType(self) -> Type:
        return self._format.getCalculationType()

    def getRoundMode(self) -> RoundType:
        return self._round.roundMode

    def getStoreAsNative(self) -> bool:
        return self._stored.numpy.kind == "f"

    def isNanooModeEnabled(self) -> bool:
        return self._nanoo

    def isCastOpParamSet(self) -> bool:
        return self._params is not None

    def getCastOpParams(self) -> Tensor:
        if self._params is None:
            raise poplibs_error("GfloatCast: no parameters; createCastOpParamsTensor comes first")
        return self._params

    def inPlaceOp(self, outType: Type) -> bool:
        return outType == self._stored

    def createCastOpParamsTensor(
        self, graph: Graph, prog: Sequence | ComputeSet, debugContext: str = ""
    ) -> Tensor:
        """Work out the parameters of the cast, on tile 0, and keep them."""
        name, kind = debug_name(debugContext, "castOpParams"), self.getCalculationType()
        packed = self._format.getPackedFloatParameters()
        layout = graph.addConstant(UNSIGNED_INT, [1], packed, f"{name}/gfStruct")
        params = graph.addVariable(UNSIGNED_INT, [PARAMETERS[kind]], name)
        for tensor in (layout, params):
            graph.setTileMapping(tensor, 0)
        compute_set = prog if isinstance(prog, ComputeSet) else graph.addComputeSet(name)
        fields = {
            "gfStruct": cut_field("gfStruct", "input", layout, [0], [1]),
            "param": cut_field("param", "output", params, [0], [PARAMETERS[kind]]),
        }
        tile = np.zeros(1, np.int64)
        codelet, cycles = vertices.parameter_codelet(kind), vertices.parameters_of(tile, kind)
        graph.add_vertices(VertexGroup(compute_set.id, codelet, tile, fields, {}, cycles))
        if isinstance(prog, Sequence):
            prog.add(Execute(compute_set))
        self._params = params
        return params

    def castNativeToGfloat(
        self, graph: Graph, input: Tensor, prog: Sequence | ComputeSet, debugContext: str = ""
    ) -> Tensor:
        """Return a tensor of float or half rounded to the format, as it is stored."""
        name = debug_name(debugContext, "castNativeToGfloat")
        self._check(input, name)
        out = graph.clone(input, f"{name}/out", self._stored)
        self._to_format(graph, input, out, prog, name)
        return out

    def castNativeToGfloatInPlace(
        self, graph: Graph, input: Tensor, prog: Sequence | ComputeSet, debugContext: str = ""
    ) -> None:
        """Round a tensor to the format; it has the type in which the format is stored."""
        name = debug_name(debugContext, "castNativeToGfloatInPlace")
        self._check(input, name)
        if not self.inPlaceOp(input.dtype):
            raise poplibs_error(f"{name}: {input!r}; {self._stored} is needed")
        self._to_format(graph, input, None, prog, name)

    def castGfloatToNative(
        self, graph: Graph, input: Tensor, prog: Sequence | ComputeSet, debugContext: str = ""
    ) -> Tensor:
        """Return the numbers of a packed tensor as floats of the machine."""
        name = debug_name(debugContext, "castGfloatToNative")
        if self.getStoreAsNative() or input.dtype != self._stored:
            raise poplibs_error(f"{name}: {input!r}; a packed tensor of {self._stored} is needed")
        self.getCastOpParams()
        out, kind = graph.clone(input, f"{name}/out", self._native), self._format.getFormatType()
        if self._stored == SHORT:
            label = f"CastGf16ToFloatSupervisor<{kind.name}>"
            cost = lambda n: vertices.from_short(n, kind.name)  # noqa: E731
        else:
            half = self._native == HALF
            label = f"CastGf8ToHalfSupervisor<{kind.name}>" if half else "CastGf8ToFloatSupervisor"
            cost = lambda n: vertices.from_byte(n, kind.name)  # noqa: E731
        codelet = vertices.from_format(label, self._format.format, self._stored, self._native)
        self._add(graph, codelet, {"in": input, "out": out}, cost, prog, name)
        return out

    def _check(self, input: Tensor, name: str) -> None:
        if input.dtype not in (FLOAT, HALF) or not input.numElements():
            raise poplibs_error(f"{name}: {input!r}; elements of float or half are needed")
        self.getCastOpParams()

    def _to_format(
        self,
        graph: Graph,
        input: Tensor,
        out: Tensor | None,
        prog: Sequence | ComputeSet,
        name: str,
    ) -> None:
        small = self.getCalculationType() == HALF
        nan = self._nanoo and self._format.format.infinities and not self._format.isBlockFloat()
        tail = f"{str(nan).lower()},{self._round.roundMode.name}>"
        place = "InPlace" if out is None else ""
        kinds = f"{input.dtype}," if out is None else f"{input.dtype},{self._stored},"
        label = f"CastToGfloat{'16' if small else '32'}{place}Supervisor<{kinds}{tail}"
        codelet = vertices.to_format(
            label, self._format.format, self._round.rounding(nan=nan), graph.target, self._stored,
            in_place=out is None,
        )  # fmt: skip

        def cost(n: IntArray) -> IntArray:
            if small:
                return vertices.to_small(n, input.dtype, self._stored)
            return vertices.to_large(n, self._stored)

        tensors = {"inOut": input} if out is None else {"in": input, "out": out}
        self._add(graph, codelet, tensors, cost, prog, name)

    def _add(
        self, graph: Graph, codelet: Codelet, tensors: dict[str, Tensor], cost: Any,
        prog: Sequence | ComputeSet, name: str,
    ) -> None:  # fmt: skip
        """Add a supervisor for each tile, which has all regions of the tile."""
        ways: Any = {"in": "input", "out": "output", "inOut": "inout"}
        first = next(iter(tensors))
        with graph.debug_scope(name, "popfloat"):
            operands = {key: (ways[key], tensor) for key, tensor in tensors.items()}
            ordered = in_memory_order(operands, first)
            regions = regions_of(graph, ordered[first][1])
            tiles = present(regions.tile)
            ranges = np.bincount(np.searchsorted(tiles, regions.tile), minlength=len(tiles))
            fields: dict[str, Field] = {
                key: cut_ranges(key, way, tensor, regions.low, regions.high, ranges)
                for key, (way, tensor) in ordered.items()
            }
            params, begin = self.getCastOpParams(), np.zeros(len(tiles), np.int64)
            end = begin + params.numElements()
            fields["param"] = cut_field("param", "input", params, begin, end)
            compute_set = prog if isinstance(prog, ComputeSet) else graph.addComputeSet(name)
            cycles = cost(fields[first].counts())
            graph.add_vertices(VertexGroup(compute_set.id, codelet, tiles, fields, {}, cycles))
            if isinstance(prog, Sequence):
                prog.add(Execute(compute_set))


def _type_of(spec: SpecType, usual: Type, name: str) -> Type:
    if spec == SpecType.AUTO:
        return usual
    if spec not in _STORED:
        kinds = ", ".join(kind.name for kind in _STORED)
        raise poplibs_error(f"GfloatCast: {name} is {spec.name}; AUTO, {kinds} are possible")
    return _STORED[spec]


def singleToHalf(value: float, enNanoo: bool = False) -> int:
    """Return the bits of a number as a half; one that is too large is NaN, or the largest.

    >>> from simulator.poplibs.popfloat import experimental
    >>> hex(experimental.singleToHalf(1.0))  # an exponent of 15, no mantissa
    '0x3c00'
    """
    form = Format(10, 5, 15, denormals=True, infinities=True)
    result = vertices.rounded(
        np.array([np.float32(value)], np.float64), form, Rounding("RN", nan=enNanoo), np.zeros(1)
    )
    return int(result.astype(np.float16).view(np.uint16)[0])


def halfToSingle(ihalf: int) -> float:
    """Return the number that the bits of a half are.

    >>> from simulator.poplibs.popfloat import experimental
    >>> experimental.halfToSingle(0x3C00)  # an exponent of 15, no mantissa
    1.0
    """
    return float(np.array([ihalf], np.uint16).view(np.float16)[0])
