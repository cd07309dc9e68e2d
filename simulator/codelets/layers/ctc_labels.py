"""The vertex that numbers a label of a sample by where it stands first among the sample's labels.

Values: PopLibs lib/popnn/codelets/CTCLoss.cpp. PopLibs counts no cycles of it; ours,
ESTIMATE: a comparison with each label before it.
"""

from __future__ import annotations

import numpy as np

from simulator.codelets.vertex_type import VertexTypes, worker
from simulator.graph.types import Array, IntArray, Type
from simulator.graph.vertices.vertex import Codelet, Operands

CALL, COMPARISON = 20, 4
ESTIMATE = "our estimate, from PopLibs lib/popnn/codelets/CTCLoss.cpp"


def remap_cycles(label: IntArray) -> IntArray:
    """20 + 4 a label up to this one, a worker."""
    return CALL + COMPARISON * (label + 1)


TYPES = VertexTypes(
    (
        worker(
            "popnn::CTCRemapLabels<type>",
            "labelsSlice remapLabel remapLabelForPost",
            remap_cycles,
            ESTIMATE,
            (24, 80),
            exact=False,
        ),
    )
)


def codelet(dtype: Type) -> Codelet:
    """Return the vertex; parameters are `labelId`, the place of its label, and `blankId`.

    `remapLabel` is the first place with that label, from 1 on; `remapLabelForPost` the label, or
    the blank where it is not the first of its kind.
    """

    def compute(operands: Operands) -> dict[str, Array]:
        parameters = operands.group.parameters
        place, blank = parameters["labelId"], parameters["blankId"]
        rows = operands.arrays["labelsSlice"].reshape(len(place), -1)
        label = rows[np.arange(len(place)), place]
        first = (rows == label[:, None]).argmax(axis=1)
        later = np.where(first == place, label, blank)
        return {
            "remapLabel": (first + 1).astype(dtype.numpy),
            "remapLabelForPost": later.astype(dtype.numpy),
        }

    return TYPES.codelet(f"popnn::CTCRemapLabels<{dtype}>", compute)
