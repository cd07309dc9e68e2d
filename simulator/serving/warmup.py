"""Warm-up: requests that each instance runs before its model is ready.

They are no requests of clients and are not counted. Source: Triton, ModelWarmup in
model_config.proto; files of data lie in `<model>/warmup/`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pva.errors import PvaError
from pva.plain_file import contents
from simulator.graph.errors import PoplarError
from simulator.graph.types import Array
from simulator.serving.served import Served
from simulator.serving.triton_messages.message_types import WarmupInput, WarmupSample
from simulator.serving.triton_messages.tensors import (
    DATATYPES,
    TensorError,
    datatype_of,
    from_bytes,
)

FOLDER, LIMIT = "warmup", 1 << 30


def run(served: Served) -> None:
    """Run the samples of a model on each of its instances; raises PvaError."""
    config = served.settings.config
    for number, sample in enumerate(config.model_warmup):
        place = f"model_warmup[{number}]"
        inputs = served.programs[0].held(_inputs(served, sample, place))
        for program in served.programs:
            for _ in range(sample.count or 1):
                try:
                    program.run(inputs)
                except (PoplarError, ValueError) as error:
                    path = served.settings.path
                    raise PvaError(path, str(error), "inputs as of requests", place=place) from None


def _inputs(served: Served, sample: WarmupSample, place: str) -> dict[str, Array]:
    inputs = {}
    rows = [sample.batch_size or 1] if served.settings.config.max_batch_size else []
    tensors = {tensor.name: tensor for tensor in served.settings.inputs}
    for name, data in sample.inputs.items():
        datatype = datatype_of(data.data_type) if data.data_type else ""
        dims = list(data.dims)
        if datatype != tensors[name].datatype or min(dims, default=1) < 1:
            fault = f"{datatype or 'no data_type'} {dims}"
            expected = f"{tensors[name].datatype} with whole dims"
            field = f"{place}.inputs[{name!r}]"
            raise PvaError(served.settings.path, fault, expected, place=field)
        inputs[name] = _data(served.settings.path.parent, name, datatype, [*rows, *dims], data)
    return inputs


def _data(folder: Path, name: str, datatype: str, shape: list[int], data: WarmupInput) -> Array:
    dtype = np.dtype(DATATYPES[datatype][1])
    if data.WhichOneof("input_data_type") == "random_data":
        return np.random.default_rng(0).uniform(0, 1, shape).astype(dtype)
    if data.WhichOneof("input_data_type") == "zero_data":
        return np.zeros(shape, dtype)
    path = folder / FOLDER / Path(data.input_data_file).name
    try:
        return from_bytes(name, datatype, shape, contents(path, "data of a warm-up", LIMIT))
    except TensorError as error:
        raise PvaError(path, str(error), "raw bytes of all rows") from None
