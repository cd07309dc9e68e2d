"""Operator sets: which version of an operator a model has, and models in another set."""

from __future__ import annotations

import onnx
import onnx.version_converter

from simulator.popart.errors import popart_exception
from simulator.popart.importing.model_files.model_file import opsets_of
from simulator.popart.importing.state import Import
from simulator.popart.representation.ir import ONNX

GUIDE_OPSET = 11  # the newest that the user guide lists versions of


def version_of(domain: str, operator: str, opset: int) -> int:
    """Return the first opset that has the operator as this one has it."""
    schemas = "" if domain == ONNX else domain
    try:
        return int(onnx.defs.get_schema(operator, opset, schemas).since_version)
    except onnx.defs.SchemaError:
        return opset


def converted(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """Return the model in the operator set of the guide, for versions that have no lowering.

    None when onnx's converter cannot do it, or it is that operator set already.
    """
    batched = any(node.op_type == "Scan" and node.input[0] == "" for node in model.graph.node)
    if batched or opsets_of(model).get(ONNX) in (None, GUIDE_OPSET):
        return None  # of a Scan of version 8 the converter would drop the batch
    try:
        return onnx.version_converter.convert_version(model, GUIDE_OPSET)
    except Exception:  # whatever the converter finds; the first errors say what is needed
        return None


def check_opsets(state: Import) -> None:
    newest = onnx.defs.onnx_opset_version()
    if not 1 <= state.opsets.get(ONNX, 1) <= newest:
        raise popart_exception(
            f"{state.what}: operator set {state.opsets[ONNX]} of {ONNX}; known are 1 to {newest}"
        )
