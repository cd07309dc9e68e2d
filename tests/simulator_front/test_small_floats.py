"""Casts to floats of any size: every number of a format, roundings, packing, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_program import DeviceProgram
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.codelets.formats import small_floats
from simulator.graph.errors import InvalidOptionError, poplibs_error
from simulator.graph.types import FLOAT, HALF, INT, SHORT, SIGNED_CHAR, Type
from simulator.poplibs.popfloat.experimental import (
    FormatConfig,
    FormatType,
    GfloatCast,
    RoundConfig,
    RoundType,
    SpecType,
    SRDensityType,
    halfToSingle,
    singleToHalf,
)

NEAREST = RoundConfig(RoundType.RN)


def numbers_of(mantissa: int, exponent: int, bias: int, denormals: bool, infinities: bool) -> Any:
    """List the positive numbers of a format, from its definition."""
    fields = 2**exponent - (1 if infinities else 0)
    found = [0.0]
    for field in range(fields):
        for low in range(2**mantissa):
            if field:
                found.append((1 + low / 2**mantissa) * 2.0 ** (field - bias))
            elif denormals:
                found.append(low / 2**mantissa * 2.0 ** (1 - bias))
    return np.unique(found)


def cast(config: FormatConfig, rounding: RoundConfig, values: Any, dtype: Type = FLOAT,
         nan: bool = False, **types: SpecType) -> Any:  # fmt: skip
    run = DeviceProgram()
    one = GfloatCast(config, rounding, nan, **types)
    one.createCastOpParamsTensor(run.graph, run.program)
    out = one.castNativeToGfloat(run.graph, run.tensor(values, dtype), run.program)
    outs = [out]
    if not one.getStoreAsNative():
        outs.append(one.castGfloatToNative(run.graph, out, run.program))
    return run.run(*outs)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_number_becomes_the_nearest_of_its_format(data: st.DataObject) -> None:
    mantissa, exponent = data.draw(st.integers(1, 5)), data.draw(st.integers(2, 5))
    bias = data.draw(st.integers(1, 15))
    flags = (data.draw(st.booleans()), data.draw(st.booleans()))
    numbers = numbers_of(mantissa, exponent, bias, *flags)
    values = np.random.default_rng(data.draw(st.integers(0, 99))).normal(size=64)
    values = (values * numbers[-1] * data.draw(st.sampled_from([0.001, 0.1, 0.8]))).astype(
        np.float32
    )
    config = FormatConfig(mantissa, exponent, bias, *flags, SpecType.FP32)
    (out,) = cast(config, NEAREST, values, GFType=SpecType.FP32)
    normal = 2.0 ** (1 - bias)
    for value, result in zip(values.tolist(), out.tolist(), strict=True):
        distance = np.abs(numbers - abs(value)).min()
        if flags[0] or abs(value) >= normal:
            assert abs(abs(result) - abs(value)) == distance
        assert abs(result) in numbers and result * value >= 0


def test_each_rounding_goes_its_way() -> None:
    # 2 bits of mantissa: from 1 to 2 in steps of a quarter
    values = [1.1, 1.125, 1.2, 1.375, -1.1, -1.125, -1.2, -1.375]
    wanted = {
        "RZ": [1, 1, 1, 1.25, -1, -1, -1, -1.25],
        "RN": [1, 1, 1.25, 1.5, -1, -1, -1.25, -1.5],
        "RA": [1, 1.25, 1.25, 1.5, -1, -1.25, -1.25, -1.5],
        "RU": [1.25, 1.25, 1.25, 1.5, -1, -1, -1, -1.25],
        "RD": [1, 1, 1, 1.25, -1.25, -1.25, -1.25, -1.5],
    }
    for mode, expected in wanted.items():
        config = FormatConfig(2, 5, 15)
        (out,) = cast(config, RoundConfig(RoundType[mode]), values, GFType=SpecType.FP32)
        assert out.tolist() == expected, mode


def test_stochastic_rounding_is_right_on_average() -> None:
    values, config = np.full(6000, 1.0625), FormatConfig(2, 5, 15)
    (out,) = cast(config, RoundConfig(RoundType.SR), values, GFType=SpecType.FP32)
    assert set(np.unique(out).tolist()) == {1, 1.25}
    assert out.mean() == pytest.approx(1.0625, abs=0.006)  # 4 standard deviations of the mean
    even = RoundConfig(
        RoundType.SX, 24, FLOAT, SRDensityType.UNIFORM, srNoiseMin=0.5, srNoiseMax=0.6
    )
    assert cast(config, even, values, GFType=SpecType.FP32)[0].tolist() == [1] * 6000


@pytest.mark.parametrize(
    ("sizes", "infinities", "stored"),
    [
        ((2, 5, 15), True, SIGNED_CHAR),
        ((2, 5, 15), False, SIGNED_CHAR),
        ((3, 4, 7), False, SIGNED_CHAR),
        ((7, 8, 127), True, SHORT),
        ((9, 6, 31), False, SHORT),
    ],
)
def test_packed_numbers_come_back(
    sizes: Any, infinities: bool, stored: Type, tmp_path: Any
) -> None:
    config = FormatConfig(*sizes, True, infinities)
    assert config.getStorageType() == stored
    values = np.random.default_rng(3).normal(size=100).astype(np.float32)
    run, one = DeviceProgram(), GfloatCast(config, NEAREST, False)
    one.createCastOpParamsTensor(run.graph, run.program)
    packed = one.castNativeToGfloat(run.graph, run.tensor(values), run.program)
    back = one.castGfloatToNative(run.graph, packed, run.program)
    bits, again = run.run(packed, back, report=tmp_path / "report")
    plain = small_floats.rounded(values.astype(np.float64), config.format,
                                 small_floats.Rounding("RN"), np.zeros(1))  # fmt: skip
    assert bits.dtype == stored.numpy and np.array_equal(again, plain.astype(again.dtype))
    if sizes == (7, 8, 127):  # bfloat16 is the upper half of a float
        upper = plain.astype(np.float32).view(np.uint32) >> 16
        assert np.array_equal(bits.view(np.uint16), upper)
    if sizes == (2, 5, 15) and infinities:  # and 1/5/2 that of a half
        assert np.array_equal(bits.view(np.uint8), plain.astype(np.float16).view(np.uint16) >> 8)


def test_what_is_too_large_is_the_largest_infinity_or_nan() -> None:
    values = [1e9, -1e9, np.inf, np.nan]
    top = 1.75 * 2.0**15
    (clipped,) = cast(FormatConfig(2, 5, 15), NEAREST, values, GFType=SpecType.FP32)
    np.testing.assert_array_equal(clipped, [top, -top, np.inf, np.nan])
    (odd,) = cast(FormatConfig(2, 5, 15), NEAREST, values, nan=True, GFType=SpecType.FP32)
    assert np.isnan(odd).all()
    (none,) = cast(FormatConfig(2, 5, 15, True, False), NEAREST, values, GFType=SpecType.FP32)
    np.testing.assert_array_equal(none, [2 * top, -2 * top, 2 * top, np.nan])


def test_a_cast_in_place_and_one_of_fixed_steps() -> None:
    run, config = DeviceProgram(), FormatConfig(4, 0, 1, True, False)
    one = GfloatCast(config, NEAREST, False, SpecType.FP16)
    one.createCastOpParamsTensor(run.graph, run.program)
    t = run.tensor([0.3, -0.3, 5.0], HALF)
    one.castNativeToGfloatInPlace(run.graph, t, run.program)
    # sixteenths up to 15
    assert run.run(t)[0].tolist() == [0.3125, -0.3125, 0.9375]


def test_formats_are_stored_as_in_popfloat() -> None:
    kinds = {(2, 5): "ONE_FIVE_TWO_GF8", (3, 4): "MIN_NORM_ALIGN_GF8", (10, 5): "IEEE_FP16",
             (8, 5): "QUANTISED_FP16", (7, 8): "BFLOAT16", (9, 6): "ENABLE_DENORM_GF16",
             (23, 8): "QUANTISED_FP32"}  # fmt: skip
    for sizes, kind in kinds.items():
        assert FormatConfig(*sizes, 15).getFormatType() == FormatType[kind]
    assert FormatConfig(2, 5, 15, True, False).getFormatType() == FormatType.MAX_NORM_ALIGN_GF8
    assert FormatConfig(9, 6, 31, False).getFormatType() == FormatType.NO_DENORM_GF16
    assert [singleToHalf(1.5), halfToSingle(0x3E00)] == [0x3E00, 1.5]
    assert np.isnan(halfToSingle(singleToHalf(1e6, True))) and singleToHalf(1e6) == 0x7BFF


def test_cycles_are_poplibs() -> None:
    n = np.array([10])
    assert small_floats.to_small(n, FLOAT, HALF) == 20 + 3 * 38
    assert small_floats.to_small(n, HALF, SIGNED_CHAR) == 27 + 3 * 44
    assert small_floats.to_large(n, FLOAT) == 35 + 5 * 27
    assert small_floats.to_large(n, SHORT) == 46 + 5 * 29
    assert small_floats.from_byte(n, "MIN_NORM_ALIGN_GF8") == 14 + 3 * 23
    assert small_floats.from_short(n, "BFLOAT16") == 25 + 5 * 3


def test_what_cannot_be_cast_is_refused() -> None:
    run, one = DeviceProgram(), GfloatCast(FormatConfig(2, 5, 15), NEAREST)
    t = run.tensor([1.0])
    with pytest.raises(poplibs_error, match="no parameters; createCastOpParamsTensor comes first"):
        one.castNativeToGfloat(run.graph, t, run.program)
    one.createCastOpParamsTensor(run.graph, run.program)
    with pytest.raises(poplibs_error, match="elements of float or half are needed"):
        one.castNativeToGfloat(run.graph, run.tensor([1], INT), run.program)
    with pytest.raises(poplibs_error, match="a packed tensor of signed char is needed"):
        one.castGfloatToNative(run.graph, t, run.program)
    with pytest.raises(poplibs_error, match="24 mantissa and 5 exponent bits; at most 23 and 8"):
        FormatConfig(24, 5, 15)
    with pytest.raises(poplibs_error, match="1/8/7 is not computed in half"):
        FormatConfig(7, 8, 127, True, True, HALF)
    with pytest.raises(poplibs_error, match="noise of density NORMAL; the model has UNIFORM"):
        RoundConfig(RoundType.SX, 24, FLOAT, SRDensityType.NORMAL)
    with pytest.raises(poplibs_error, match="GFType is INT8, of 8 bits; the format has 16"):
        GfloatCast(FormatConfig(7, 8, 127), NEAREST, True, SpecType.INT8)
    with pytest.raises(InvalidOptionError, match="no option 'numMantissaBit'; did you mean numM"):
        GfloatCast.fromOptions({"numMantissaBit": "2"}, {"roundMode": "RN"}, FLOAT)
    made = GfloatCast.fromOptions({"numMantissaBits": "2"}, {"roundMode": "RN"}, HALF)
    assert made.getFormatConfig().getFormatType() == FormatType.ONE_FIVE_TWO_GF8
