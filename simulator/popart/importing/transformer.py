"""Changes of a model before it is compiled: halves, constants, without what nobody reads."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from simulator.popart.errors import popart_exception
from simulator.popart.importing.model_files.external_data import save_externally
from simulator.popart.importing.model_files.model_file import Model, read_model, tensor_values
from simulator.popart.representation.tensor_info import ELEMENT_TYPES

LARGEST = float(np.finfo(np.float16).max)


class GraphTransformer:
    """A model that is being changed: GraphTransformer("model.onnx").convertFloatsToHalfs().

    >>> from simulator import popart
    >>> builder = popart.Builder()
    >>> x = builder.addInputTensor("FLOAT", [2])
    >>> w = builder.addInitializedInputTensor(np.float32([1, 2]), "w")
    >>> y = builder.aiOnnx.add([x, w])
    >>> builder.addOutputTensor(y)
    >>> transformer = GraphTransformer(builder.getModelProto())
    >>> transformer.convertFloatsToHalfs()
    >>> model = onnx.load_from_string(transformer.getModelProto())
    >>> model.graph.initializer[0].data_type == TensorProto.FLOAT16
    True
    """

    def __init__(self, modelProtoOrFilename: Model) -> None:
        model, self._what, self._folder = read_model(modelProtoOrFilename)
        self._model = onnx.ModelProto()
        self._model.CopyFrom(model)

    def getModelProto(self) -> bytes:
        """Return the model as a serialised ModelProto.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2])
        >>> w = builder.addInitializedInputTensor(np.float32([1, 2]), "w")
        >>> y = builder.aiOnnx.add([x, w])
        >>> builder.addOutputTensor(y)
        >>> transformer = GraphTransformer(builder.getModelProto())
        >>> model = onnx.load_from_string(transformer.getModelProto())
        >>> model.graph.node[0].op_type
        'Add'
        """
        return bytes(self._model.SerializeToString())

    def convertFloatsToHalfs(self) -> None:
        """Make floats halves: inputs, weights, constants, and what nodes are told to cast to.

        A number beyond what a half can be, as the -3.4e38 of a mask, becomes the half next to it,
        -65504; a UserWarning names the tensor. What is infinite stays so.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2])
        >>> w = builder.addInitializedInputTensor(np.float32([1, 2]), "w")
        >>> y = builder.aiOnnx.add([x, w])
        >>> builder.addOutputTensor(y)
        >>> transformer = GraphTransformer(builder.getModelProto())
        >>> transformer.convertFloatsToHalfs()
        >>> model = onnx.load_from_string(transformer.getModelProto())
        >>> model.graph.initializer[0].data_type == TensorProto.FLOAT16
        True
        """
        graphs = list(_graphs(self._model.graph))
        nodes = [node for graph in graphs for node in graph.node]
        attributes = [(node, attribute) for node in nodes for attribute in node.attribute]
        for tensor in (tensor for graph in graphs for tensor in graph.initializer):
            self._halve(tensor, f"initialiser {tensor.name!r}")
        for node, attribute in attributes:
            if attribute.HasField("t"):
                self._halve(attribute.t, f"constant {(node.output or [node.name])[0]!r}")
            elif node.op_type == "Cast" and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.FLOAT16
        for graph in graphs:
            for value in (*graph.input, *graph.output, *graph.value_info):
                if value.type.tensor_type.elem_type == TensorProto.FLOAT:
                    value.type.tensor_type.elem_type = TensorProto.FLOAT16

    def convertInitializersToConstants(self, ids: Iterable[str]) -> None:
        """Make weights constants, which cannot change.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2])
        >>> w = builder.addInitializedInputTensor(np.float32([1, 2]), "w")
        >>> y = builder.aiOnnx.add([x, w])
        >>> builder.addOutputTensor(y)
        >>> transformer = GraphTransformer(builder.getModelProto())
        >>> transformer.convertInitializersToConstants([w])
        >>> model = onnx.load_from_string(transformer.getModelProto())
        >>> [node.op_type for node in model.graph.node]
        ['Constant', 'Add']
        """
        graph, names = self._model.graph, list(ids)
        stored = {tensor.name: tensor for tensor in graph.initializer}
        unknown = [name for name in names if name not in stored]
        if unknown:
            raise popart_exception(f"TensorId {unknown[0]} not in the model initalizers")
        constants = [helper.make_node("Constant", [], [n], n, value=stored[n]) for n in names]
        nodes, initializers = (
            list(graph.node),
            [t for t in graph.initializer if t.name not in names],
        )
        inputs = [value for value in graph.input if value.name not in names]
        for field, items in ((graph.node, [*constants, *nodes]), (graph.initializer, initializers),
                             (graph.input, inputs)):  # fmt: skip
            copies = [type(item).FromString(item.SerializeToString()) for item in items]
            del field[:]
            field.extend(copies)

    def convertAllFixedPointInitializersToConstants(self) -> None:
        """Make weights of whole numbers constants.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> w = builder.addInitializedInputTensor(np.int32([1, 2]), "w")
        >>> builder.addOutputTensor(builder.aiOnnx.abs([w]))
        >>> transformer = GraphTransformer(builder.getModelProto())
        >>> transformer.convertAllFixedPointInitializersToConstants()
        >>> model = onnx.load_from_string(transformer.getModelProto())
        >>> [node.op_type for node in model.graph.node]
        ['Constant', 'Abs']
        """
        stored = self._model.graph.initializer
        kinds = {row.onnx for row in ELEMENT_TYPES.values() if np.dtype(row.host).kind in "iu"}
        self.convertInitializersToConstants(t.name for t in stored if t.data_type in kinds)

    def saveInitializersExternally(self, ids: Iterable[str], fn: str) -> None:
        """Move the values of weights to a file, which the model then names.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2])
        >>> w = builder.addInitializedInputTensor(np.float32([1, 2]), "w")
        >>> y = builder.aiOnnx.add([x, w])
        >>> builder.addOutputTensor(y)
        >>> transformer = GraphTransformer(builder.getModelProto())
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as directory:
        ...     transformer.saveInitializersExternally([w], f"{directory}/weights")
        >>> model = onnx.load_from_string(transformer.getModelProto())
        >>> len(model.graph.initializer[0].raw_data)
        0
        """
        save_externally(self._model.graph.initializer, ids, str(fn), self._what)

    def removeUnusedInputs(self) -> None:
        """Take away inputs and weights that no node reads.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2])
        >>> y = builder.addInputTensor("FLOAT", [2])
        >>> builder.addOutputTensor(builder.aiOnnx.relu([x]))
        >>> transformer = GraphTransformer(builder.getModelProto())
        >>> transformer.removeUnusedInputs()
        >>> model = onnx.load_from_string(transformer.getModelProto())
        >>> [value.name for value in model.graph.input] == [x]
        True
        """
        read = {
            name for graph in _graphs(self._model.graph) for n in graph.node for name in n.input
        }
        read.update(value.name for value in self._model.graph.output)
        for field in (self._model.graph.input, self._model.graph.initializer):
            for place in reversed([p for p, item in enumerate(field) if item.name not in read]):
                del field[place]

    def prepareNodesForTraining(self) -> None:
        """Leave all as it is: a TrainingSession trains norms and drops whatever they are told.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2])
        >>> w = builder.addInitializedInputTensor(np.float32([1, 2]), "w")
        >>> y = builder.aiOnnx.add([x, w])
        >>> builder.addOutputTensor(y)
        >>> transformer = GraphTransformer(builder.getModelProto())
        >>> transformer.prepareNodesForTraining()
        >>> model = onnx.load_from_string(transformer.getModelProto())
        >>> model.graph.node[0].op_type
        'Add'
        """

    def _halve(self, tensor: onnx.TensorProto, name: str) -> None:
        if tensor.data_type != TensorProto.FLOAT:
            return
        subject = f"{self._what}: {name}"
        values = np.asarray(tensor_values(tensor, self._folder, subject))
        with np.errstate(over="ignore"):
            halves = values.astype(np.float16)
        beyond = np.isfinite(values) & np.isinf(halves)
        if beyond.any():
            halves[beyond] = np.copysign(LARGEST, values[beyond])
            first = f"{values[beyond][0]:g} becomes {halves[beyond][0]:g}"
            suffix = f", and {beyond.sum() - 1:,} more" if beyond.sum() > 1 else ""
            warnings.warn(f"{subject}: {first}, the nearest half{suffix}", stacklevel=3)
        tensor.CopyFrom(numpy_helper.from_array(halves, tensor.name))


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Return a graph and those of the branches within."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _graphs(attribute.g)
