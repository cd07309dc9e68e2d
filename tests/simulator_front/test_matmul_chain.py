"""The chain of matrix products."""

from __future__ import annotations

import pytest

from simulator.examples import matmul_chain
from simulator.graph.errors import PoplarError


@pytest.mark.parametrize("target", ["tiny", "mk2"])
def test_the_chain_equals_numpys(target: str) -> None:
    shapes = [(80, 50), (50, 40), (40, 20)]
    result = matmul_chain.run(shapes, target=target)
    assert result.product.shape == (80, 20)
    assert result.error < 1e-5


def test_shapes_are_read_as_rows_by_columns() -> None:
    assert matmul_chain.parse_shapes(["2x3", "3x4"]) == [(2, 3), (3, 4)]


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["2x3"], "at least two matrices"),
        (["2x3", "4x4"], "shape 4x4: has 4 rows after a matrix of 3 columns"),
        (["2x3", "3"], "shape '3': rows x columns is needed"),
        (["0x3", "3x3"], "shape '0x3'"),
    ],
)
def test_shapes_that_do_not_chain_are_refused(texts: list[str], said: str) -> None:
    with pytest.raises(PoplarError, match=said):
        matmul_chain.parse_shapes(texts)
