"""The classes of an output: values, indexes and labels as text, the largest first.

Source: Triton, docs/protocol/extension_classification.md.
"""

from __future__ import annotations

import numpy as np

from pva.plain_file import contents
from simulator.graph.types import Array
from simulator.serving.model_config import Settings, Tensor
from simulator.serving.served import RequestError
from simulator.serving.triton_messages.tensors import objects

LIMIT = 16 << 20  # bytes of a file of labels


def classes(settings: Settings, tensor: Tensor, array: Array, limit: object) -> Array:
    """Return the `limit` largest values of each row as `value:index[:label]`."""
    if type(limit) is not int or limit < 1:
        raise RequestError(f"output {tensor.name!r}: classification {limit!r}; a number from 1 on")
    batched = settings.config.max_batch_size > 0
    rows = array.reshape(len(array), -1) if batched else array.reshape(1, -1)
    count = min(limit, rows.shape[1])
    order = np.argsort(-rows.astype(float), axis=1, kind="stable")[:, :count]
    labels = _labels(settings, tensor)
    texts = [
        f"{row[index]:f}:{index}{labels[index] if index < len(labels) else ''}".encode()
        for row, best in zip(rows.tolist(), order.tolist(), strict=True)
        for index in best
    ]
    return objects(texts).reshape((len(rows), count) if batched else (count,))


def _labels(settings: Settings, tensor: Tensor) -> list[str]:
    """Read the labels of an output, a line each, with a colon before it; none where it has none."""
    declared = {output.name: output.label_filename for output in settings.config.output}
    name = declared.get(tensor.name, "")
    if not name:
        return []
    text = contents(settings.path.parent / name, "labels of an output", LIMIT)
    return [f":{line}" for line in text.decode(errors="replace").splitlines()]
