"""Transposes and regrouping keep the values and change how they lie; images are normalised."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from value_program import Values, numbers

from simulator.codelets.indexing.sorting_cycles import normalise_image
from simulator.graph.machine.target import TARGETS
from simulator.graph.program import Execute
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import BOOL, FLOAT, HALF, INT, SHORT, UNSIGNED_CHAR
from simulator.poplibs import popops, poputil
from simulator.poplibs.popops import rearrange

MK1, MK2 = TARGETS["mk1"], TARGETS["mk2"]


def channels_last(values: Values, shape: tuple[int, int], dtype: Any) -> tuple[Tensor, Any]:
    """Return a tensor [rows, columns] that lies column by column, and its values."""
    rows, columns = shape
    array = np.arange(rows * columns).reshape(rows, columns) % 2000
    tensor = values.tensor(array.T, dtype=dtype).transpose()
    return tensor, array.astype(dtype.numpy)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_matrices_are_transposed_where_they_begin(data: st.DataObject) -> None:
    count, rows, columns = (data.draw(st.integers(1, n)) for n in (30, 9, 9))
    dtype = data.draw(st.sampled_from([HALF, FLOAT, INT, SHORT]))
    values = Values()
    array = np.arange(count * rows * columns).reshape(count, rows, columns) % 2000
    tensor = values.tensor(array, dtype=dtype)
    transposes = values.graph.addComputeSet("transposes")
    out = rearrange.partialTranspose(values.graph, tensor, transposes, "net")
    values.program.add(Execute(transposes))
    found = values.run().read(out)
    np.testing.assert_array_equal(found, array.transpose(0, 2, 1).astype(dtype.numpy))
    first = [values.graph.tile_ranges(t[i][0][0])[2][0] for t in (tensor, out) for i in (0, -1)]
    assert first[:2] == first[2:]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_regrouping_keeps_values_and_changes_the_groups(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from([HALF, FLOAT]))
    lying, wanted = (4 * data.draw(st.integers(1, 4)) for _ in range(2))
    rows, columns = lying * data.draw(st.integers(1, 3)), wanted * data.draw(st.integers(1, 3))
    values = Values(num_ipus=data.draw(st.integers(1, 2)))
    tensor, array = channels_last(values, (rows, columns), dtype)
    transposes = values.graph.addComputeSet("transposes")
    groupings = (0, lying), (1, wanted)
    graph, prog = values.graph, values.program
    out = rearrange.regroupTensor(graph, tensor, prog, transposes, *groupings)
    values.program.add(Execute(transposes))
    np.testing.assert_array_equal(values.run().read(out), array)
    group = poputil.detectInnermostGrouping(graph, out)
    assert group % (8 // dtype.size) == 0
    if graph.target.num_ipus == 1:  # each tile has as many matrices as any other, or one more
        counts = [sum(high - low for low, high in part) for part in graph.getTileMapping(out)]
        assert max(counts) <= -(-rows * columns // 4) + lying * wanted


def test_what_lies_in_groups_already_or_cannot_be_transposed_stays() -> None:
    values = Values()
    tensor, array = channels_last(values, (16, 16), HALF)
    graph, prog = values.graph, values.program
    assert rearrange.regroupIfPossible(graph, tensor, prog, (0, 4)) is tensor
    assert rearrange.regroupIfPossible(graph, tensor, prog, (1, 5)) is tensor
    assert rearrange.regroupIfBeneficial(graph, tensor, tensor, prog) is tensor
    assert rearrange.regroupIfBeneficial(graph, tensor, 2, prog) is tensor
    line = values.tensor(numbers(16))
    assert rearrange.regroupIfBeneficial(graph, line, 4, prog) is line
    truths = values.tensor(np.ones((4, 4)), dtype=BOOL)
    assert rearrange.regroupIfBeneficial(graph, truths.transpose(), 4, prog).dtype == BOOL
    assert values.graph.compute_sets == []


@pytest.mark.parametrize("how", ["preferred", "reference", "possible"])
def test_a_tensor_is_regrouped_as_it_is_wanted(how: str) -> None:
    values = Values()
    tensor, array = channels_last(values, (16, 24), HALF)
    reference = values.tensor(np.zeros((16, 24)), dtype=HALF)
    graph, prog = values.graph, values.program
    if how == "preferred":
        out = rearrange.regroupIfBeneficial(graph, tensor, 8, prog, "net")
    elif how == "reference":
        out = rearrange.regroupIfBeneficial(graph, tensor, reference, prog, "net")
    else:
        out = rearrange.regroupIfPossible(graph, tensor, prog, (1, 8), "net")
    assert poputil.detectDimGroupings(graph, out)[0][0] == 1
    np.testing.assert_array_equal(values.run().read(out), array)
    assert [c.name for c in graph.compute_sets] == ["net/regroup/Transpose"]


def test_halves_are_transposed_by_all_workers_of_a_tile_and_floats_by_each() -> None:
    values = Values()
    for dtype in (HALF, FLOAT):
        tensor = values.graph.addVariable(dtype, [8, 8, 4], "t")
        values.graph.setTileMapping(tensor, 1)
        rearrange.partialTranspose(values.graph, tensor, values.graph.addComputeSet("t"))
    together, apart = values.graph.vertex_groups()
    assert together.codelet.name == "popops::Transpose1D<half>"
    # 8 matrices of 2 x 1 grains: 2 of them a worker, 27 + 2 * (15 + 20 + 0)
    assert together.cycles.tolist() == [7 + 6 * (27 + 2 * 35)]
    assert apart.codelet.name == "popops::Transpose2D<float>"
    one, two = (25 + n * (11 + 4 * (6 + 3)) for n in (1, 2))
    assert sorted(apart.cycles.tolist()) == [one] * 4 + [two] * 2


@pytest.mark.parametrize(
    ("dtype", "rows", "columns", "count", "fast"),
    [
        (HALF, 8, 4, 10, True),
        (SHORT, 4, 4, 60_000, True),
        (FLOAT, 8, 8, 10, False),
        (HALF, 8, 6, 10, False),
        (HALF, 4, 4, 70_000, False),
        (HALF, 4, 1024, 1, False),  # strides of more than 2^9
        (HALF, 4, 680, 1, True),
    ],
)
def test_fast_transposes_are_of_two_byte_elements_within_limits(
    dtype: Any, rows: int, columns: int, count: int, fast: bool
) -> None:
    assert rearrange.canUseFastTranspose(MK2, dtype, rows, columns, count) == fast


def test_vertices_transpose_what_a_function_gives_them() -> None:
    values = Values()
    array = numbers(5, 6)
    tensor = values.tensor(array)
    out = values.graph.addVariable(FLOAT, [5, 6], "out")
    transposes = values.graph.addComputeSet("t")
    mapping: list[list[tuple[int, int]]] = [[], [(0, 2)], [], [(2, 3), (3, 5)]]
    rearrange.addTransposeVertices(
        values.graph, transposes, FLOAT, 2, 3, mapping, lambda i: (tensor[i], out[i])
    )
    values.program.add(Execute(transposes))
    expected = array.reshape(5, 2, 3).transpose(0, 2, 1).reshape(5, 6)
    np.testing.assert_array_equal(values.run().read(out), expected)
    found = values.graph.getTileMapping(out)
    assert found == [[], [(0, 12)], [], [(12, 30)]]
    assert rearrange.getMinimumRegroupGrainSize(HALF) == 4
    assert rearrange.getMinimumRegroupGrainSize(INT) == 2


# Images
@pytest.mark.parametrize("dtype", [FLOAT, HALF, UNSIGNED_CHAR], ids=str)
def test_images_are_normalised_and_padded(dtype: Any) -> None:
    values = Values()
    pixels = np.random.default_rng(0).integers(0, 255, (9, 7, 3)).astype(dtype.numpy)
    image = popops.createNormaliseImageInput(values.graph, dtype, [9, 7, 3])
    values._initial.append((image, pixels))
    out_type = HALF if dtype == UNSIGNED_CHAR else dtype
    offsets, scales = ([0.1, 0.2, 0.3], [2, 3, 4])
    given = [values.tensor(numbers, dtype=out_type) for numbers in (offsets, scales)]
    out = popops.normaliseImage(values.graph, values.program, image, 1 / 255, *given, "net")
    found = values.run().read(out)
    rounded = [np.array(x, out_type.numpy).astype(np.float64) for x in (offsets, scales)]
    expected = (pixels.astype(np.float64) / 255 - rounded[0]) * rounded[1]
    assert found.shape == (9, 7, 4)
    assert found.dtype == out_type.numpy
    tolerance = 1e-5 if dtype == FLOAT else 3e-3
    np.testing.assert_allclose(found[..., :3], expected, atol=tolerance)
    assert not found[..., 3].any()
    for low, high, _ in zip(*values.graph.tile_ranges(image), strict=True):
        assert low % 3 == high % 3 == 0


def test_pixels_cost_the_public_formula() -> None:
    n = np.array([12, 13, 14])
    # 2 pixels a worker, and one more where two workers or more have one
    assert normalise_image(n, FLOAT, MK1).tolist() == [6 * (52 + 34)] * 2 + [6 * (52 + 51)]
    assert normalise_image(n, UNSIGNED_CHAR, MK1)[0] == 6 * (29 + 16)


REFUSED: list[tuple[Any, str]] = [
    (
        lambda g, t, p, c: rearrange.regroupTensor(g, t, p, c, (0, 5), (1, 2), "net"),
        "net/regroup: groups of 5 of dimension 0",
    ),
    (
        lambda g, t, p, c: rearrange.regroupIfBeneficial(g, t, 3, p, "net"),
        "net/regroup: groups of 3 of the last dimension",
    ),
    (
        lambda g, t, p, c: rearrange.regroupIfBeneficial(g, t, t[:2], p, "net"),
        "net/regroup: .* differ in shape",
    ),
    (
        lambda g, t, p, c: rearrange.partialTranspose(g, t[0], c, "net"),
        "net/partialTranspose: .*at least two dimensions",
    ),
    (
        lambda g, t, p, c: rearrange.partialTranspose(
            g, g.addVariable(FLOAT, [2, 2], "new"), c, "net"
        ),
        "net/partialTranspose: .*not wholly mapped",
    ),
    (
        lambda g, t, p, c: rearrange.addTransposeVertices(
            g, c, FLOAT, 3, 3, [[(0, 1)]], lambda i: (t, t)
        ),
        "matrices are not all of 3 rows by 3 columns",
    ),
    (
        lambda g, t, p, c: popops.normaliseImage(g, p, t, 1.0, t, t, "net"),
        r"net/normaliseImage: shape is \[4, 8\]; an image",
    ),
    (
        lambda g, t, p, c: popops.createNormaliseImageInput(g, INT, [2, 3], "net"),
        "net/createNormaliseImageInput: type is int; known for",
    ),
    (
        lambda g, t, p, c: popops.normaliseImage(g, p, t.slice(0, 3, 1), 1.0, t, t, "net"),
        r"net/normaliseImage: offsets or scales .* needs float\[3\]",
    ),
    (
        lambda g, t, p, c: popops.normaliseImage(
            g, p, t.slice(0, 3, 1), 0.0, t[0][:3], t[0][:3], "net"
        ),
        "net/normaliseImage: inScale is 0.0",
    ),
]


@pytest.mark.parametrize(("call", "said"), REFUSED, ids=[said[:20] for _, said in REFUSED])
def test_what_does_not_fit_names_the_operation(call: Any, said: str) -> None:
    values = Values()
    compute_set = values.graph.addComputeSet("set")
    with pytest.raises(poputil.poplibs_error, match=said):
        call(values.graph, values.tensor(numbers(4, 8)), values.program, compute_set)
