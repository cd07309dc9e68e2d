"""A PopEF file of a product of matrices, made once: y = x w, of 2 x 3 by 3 x 4."""

from __future__ import annotations

from functools import cache

import numpy as np
import onnx

from simulator import popart
from tests.popart.models import model, node, prepared

W = np.arange(12, dtype=np.float32).reshape(3, 4)
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@cache
def product() -> onnx.ModelProto:
    """Make the model."""
    return model([node("MatMul", "x w", "y")], {"x": [2, 3]}, ["y"], {"w": W})


@cache
def session(batches: int = 1) -> popart.InferenceSession:
    """Compile it."""
    return prepared(product(), ["y"], batches)
