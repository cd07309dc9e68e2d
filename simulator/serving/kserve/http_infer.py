"""Inference over HTTP: JSON, and behind it raw tensors in its order.

Sources: KServe, Open Inference Protocol; Triton, docs/protocol/extension_binary_data.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from simulator.graph.types import Array
from simulator.serving.kserve import classification
from simulator.serving.kserve.http_calls import HEADER, Call, Reply, parsed
from simulator.serving.served import RequestError, Served
from simulator.serving.server import MAX_ELEMENTS, InferRequest, InferResponse, Server
from simulator.serving.triton_messages.tensors import (
    DATATYPES,
    elements_of,
    from_bytes,
    from_values,
    to_bytes,
    to_values,
)


def infer_request(server: Server, call: Call) -> tuple[InferRequest, Mapping[str, object]]:
    """Read a request: JSON, then raw tensors in its order; return how outputs are wanted, too."""
    length = len(call.body) if call.header_length is None else call.header_length
    if length > len(call.body):
        raise RequestError(f"{HEADER}: {length:,} of {len(call.body):,} bytes")
    raw = memoryview(call.body)[length:]
    served = server.served(call.model, call.version)
    if not length and call.header_length is not None:
        return _raw_request(served, call, raw), {"binary_data_output": True}
    head = parsed(call.body[:length])
    inputs = _inputs(head.get("inputs"), raw)
    parameters = _object(head, "parameters")
    outputs = _objects(head, "outputs")
    names = [_text(output, "name") for output in outputs]
    output_options: dict[str, object] = {
        "binary_data_output": parameters.get("binary_data_output") is True
    }
    output_options |= {_text(output, "name"): _object(output, "parameters") for output in outputs}
    types = {_text(one, "name"): _text(one, "datatype") for one in _objects(head, "inputs")}
    query = InferRequest(
        call.model, call.version, _text(head, "id"), parameters, inputs, names, types
    )
    return query, output_options


def _raw_request(served: Served, call: Call, raw: memoryview) -> InferRequest:
    """Read a body that is nothing but the one input of a model."""
    tensors = served.settings.inputs
    if len(tensors) != 1 or -1 in tensors[0].dims:
        raise RequestError(f"model {served.name!r}: a raw body is one input of known shape")
    (tensor,) = tensors
    shape = [1, *tensor.dims] if served.settings.config.max_batch_size else list(tensor.dims)
    array = from_bytes(tensor.name, tensor.datatype, shape, raw)
    return InferRequest(call.model, call.version, "", {}, {tensor.name: array})


def _inputs(tensors: object, raw: memoryview) -> dict[str, Array]:
    if not isinstance(tensors, list) or not all(isinstance(one, dict) for one in tensors):
        raise RequestError("inputs: a list of objects with name, shape, datatype and data")
    inputs: dict[str, Array] = {}
    place = 0
    for one in tensors:
        name, datatype = _text(one, "name"), _text(one, "datatype")
        if not name or name in inputs:
            raise RequestError(f"inputs: {name!r} twice, or without a name")
        if datatype not in DATATYPES:
            raise RequestError(
                f"input {name!r}: datatype {datatype!r}; one of {', '.join(DATATYPES)}"
            )
        shape = one.get("shape")
        if not isinstance(shape, list):
            raise RequestError(f"input {name!r}: no shape")
        elements_of(name, shape, MAX_ELEMENTS)
        parameters = _object(one, "parameters")
        if any(key.startswith("shared_memory") for key in parameters):
            raise RequestError(f"input {name!r}: this server has no shared memory", status=501)
        size = parameters.get("binary_data_size")
        if size is None:
            inputs[name] = from_values(name, datatype, shape, one.get("data"))
            continue
        if type(size) is not int or not 0 <= size <= len(raw) - place:
            bytes_left = len(raw) - place
            raise RequestError(
                f"input {name!r}: binary_data_size {size!r}; {bytes_left:,} bytes are left"
            )
        inputs[name] = from_bytes(name, datatype, shape, raw[place : place + size])
        place += size
    if place != len(raw):
        raise RequestError(f"{len(raw) - place:,} bytes behind the last input")
    return inputs


def _text(holder: Mapping[str, object], key: str) -> str:
    value = holder.get(key, "")
    if not isinstance(value, str):
        raise RequestError(f"{key}: {str(value)[:40]!r}; a text")
    return value


def _object(holder: Mapping[str, object], key: str) -> dict[str, object]:
    value = holder.get(key) or {}
    if not isinstance(value, dict):
        raise RequestError(f"{key}: no object")
    return value


def _objects(holder: Mapping[str, object], key: str) -> list[dict[str, object]]:
    value = holder.get(key) or []
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise RequestError(f"{key}: no list of objects")
    return value


def infer_reply(response: InferResponse, output_options: Mapping[str, object]) -> Reply:
    """Write an answer: JSON, and behind it the outputs that are wanted as raw bytes."""
    tensors, raw = [], []
    for tensor, array in response.outputs:
        options = _object(output_options, tensor.name)
        datatype = tensor.datatype
        if "classification" in options:
            array = classification.classes(
                response.settings, tensor, array, options["classification"]
            )
            datatype = "BYTES"
        entry: dict[str, object] = {
            "name": tensor.name,
            "datatype": datatype,
            "shape": list(array.shape),
        }
        if options.get("binary_data", output_options["binary_data_output"]):
            raw.append(to_bytes(datatype, array))
            entry["parameters"] = {"binary_data_size": len(raw[-1])}
        elif datatype in ("FP16", "BF16"):
            raise RequestError(f"output {tensor.name!r}: {datatype} as JSON; ask for binary_data")
        else:
            entry["data"] = to_values(datatype, array)
        tensors.append(entry)
    head: dict[str, object] = {"model_name": response.model, "model_version": response.version}
    head |= {"id": response.id} if response.id else {}
    text = json.dumps(head | {"parameters": dict(response.parameters), "outputs": tensors}).encode()
    if not raw:
        return Reply(text)
    return Reply(
        b"".join([text, *raw]), ((HEADER, str(len(text))),), kind="application/octet-stream"
    )
