"""An Einsum gives what NumPy's gives, and is trained as its product."""

from __future__ import annotations

import numpy as np
import pytest
from models import model, node, outcome, prepared, tiny

from simulator import popart

RANDOM = np.random.default_rng(11)
SIZES = {"b": 2, "h": 3, "i": 4, "j": 5, "d": 6}


@pytest.mark.parametrize(
    "equation",
    [
        "ij->ji", "ij->i", "ij->", "bij", "ij,jd->id", "bhid,bhjd->bhij", "bhij,bhjd->bihd",
        "i,i->", "i,j->ji", "bij,bj->bi", "bij,d->ibd", "ij,j", "b i d , d j -> b j i", "ib,jb->ij",
        "ii->i", "ii", "bii->b", "ijij->ji", "iji,ij->j", "...d,dj->...j", "...ii->...i",
        "b...d,b...d->b...", "...ij,...jd", "...i->...",
    ],
)  # fmt: skip
def test_an_einsum_is_numpys(equation: str) -> None:
    terms = equation.replace(" ", "").partition("->")[0].split(",")
    given = {
        f"x{place}": RANDOM.normal(size=[SIZES[c] for c in term.replace("...", "bh")]).astype(
            np.float32
        )
        for place, term in enumerate(terms)
    }
    made = node("Einsum", " ".join(given), "y", equation=equation)
    proto = model([made], {name: x.shape for name, x in given.items()}, ["y"], opset=12)
    (found,) = outcome(proto, given, "y")
    expected = np.einsum(equation, *given.values())
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_weight_of_an_einsum_is_trained() -> None:
    x, w = RANDOM.normal(size=(2, 3, 4)).astype(np.float32), np.ones((4, 5), np.float32)
    proto = model([node("Einsum", "x w", "y", equation="bid,dj->bji")], {"x": x.shape}, ["y"],
                  {"w": w}, 12)  # fmt: skip
    session = popart.TrainingSession(
        proto, popart.DataFlow(1, ["Gradient___w"]), [popart.IdentityLoss("y", "loss")],
        popart.SGD(0.0), tiny(),
    )  # fmt: skip
    session.prepareDevice()
    session.weightsFromHost()
    found = session.initAnchorArrays()
    session.run(popart.PyStepIO({"x": x}, found))
    expected = np.repeat(x.sum(axis=(0, 1))[:, None], 5, axis=1)
    np.testing.assert_allclose(found["Gradient___w"], expected, rtol=1e-5)


def test_an_einsum_of_three_tensors_is_refused() -> None:
    three = node("Einsum", "x x x", "y", equation="ij,ij,ij->i")
    proto = model([three], {"x": [2, 2]}, ["y"], opset=12)
    with pytest.raises(popart.popart_exception, match="Einsum-12.: the operator has no lowering"):
        prepared(proto, ["y"])
