"""Builds ONNX models: inputs, weights, and a method for each operator of the domains.

builder.aiOnnx.conv([x, w], strides=[1, 1], debugPrefix="first")
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import onnx
from onnx import helper

from simulator.popart.errors import popart_exception
from simulator.popart.importing.from_onnx import known_infos
from simulator.popart.importing.model_files.external_data import save_externally
from simulator.popart.importing.model_files.model_file import (
    Model,
    load_model,
    opsets_of,
    typed_tensor,
)
from simulator.popart.model_builder.domain import Domain
from simulator.popart.model_builder.forms import TYPED, attribute_of, is_set, type_number
from simulator.popart.model_builder.notes import Notes, annotate
from simulator.popart.model_builder.windows import WINDOWED, check_window
from simulator.popart.operators.elements.reductions import names_no_axis
from simulator.popart.operators.signatures import Signature
from simulator.popart.representation.ir import GRAPH_NAME, GRAPHCORE, ONNX, SLICES_ATTRIBUTE
from simulator.popart.representation.tensor_info import ELEMENT_TYPES, TensorInfo, array_type
from simulator.popart.settings.input_settings import InputSettings, note_settings
from simulator.popart.variable_settings import VariableSettings, of_one_group

OPSETS = {ONNX: 10, GRAPHCORE: 1}  # those that PopART's builder begins with
defaultAiOnnxOpset, defaultAiGraphcoreOpset = OPSETS.values()
NEWEST = 11  # the last that the user guide lists
IR_VERSION = 7


class Builder(Notes):
    """A model that is being built; tensors are their names.

    >>> builder = Builder()
    >>> x = builder.addInputTensor("FLOAT", [2, 2])
    >>> y = builder.aiOnnx.relu([x])
    >>> builder.getTensorShape(y)
    [2, 2]
    """

    def __init__(
        self,
        modelProtoOrFilename: Model | None = None,
        opsets: Mapping[str, int] | None = None,
        *,
        parent: Builder | None = None,
    ) -> None:
        self._opsets: dict[str, int] = {**OPSETS, **(opsets or {})}
        if parent is not None:
            self._opsets = parent._opsets
        self._chosen = ONNX in (opsets or {})  # by who builds it
        self._graph = onnx.GraphProto(name=GRAPH_NAME)
        self._nodes: dict[str, onnx.NodeProto] = {}  # by what they make
        self._names: set[str] = set()
        self._inputs: list[str] = []  # those with values, weights, too
        self._parent = parent
        self._replicas = 1
        self._children: list[Builder] = []
        self._where = []
        self._scopes: list[str] = []
        if isinstance(modelProtoOrFilename, Mapping):  # as Builder(opsets) could be called
            self._opsets.update(modelProtoOrFilename)
        elif modelProtoOrFilename is not None:
            self._go_on(modelProtoOrFilename)
        self.aiOnnx = Domain(self.add, ONNX, self._opsets[ONNX])
        self.aiGraphcore = Domain(self.add, GRAPHCORE, self._opsets[GRAPHCORE])
        self.aiGraphcoreOpset1 = self.aiGraphcore

    @property
    def graph_proto(self) -> onnx.GraphProto:
        """Return the graph as it is now.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> y = builder.aiOnnx.relu([builder.addInputTensor("FLOAT", [2])])
        >>> [node.op_type for node in builder.graph_proto.node]
        ['Relu']
        """
        return self._graph

    def opset(self, domain: str) -> int:
        """Return the version of a domain's operator set.

        >>> from simulator import popart
        >>> popart.Builder().opset("ai.graphcore")
        1
        """
        return self._opsets[domain]

    def __getattr__(self, name: str) -> Domain:
        """Return the operators of an operator set of ONNX, the model's from then on: aiOnnxOpset9.

        Raises popart_exception where nodes of another one are there already.
        """
        version = name.removeprefix("aiOnnxOpset")
        if version == name or not version.isdecimal() or not 6 <= int(version) <= NEWEST:
            raise AttributeError(f"Builder has no {name!r}")
        if int(version) != self._opsets[ONNX]:
            if self._chosen or any(not node.domain for node in self._graph.node):
                raise popart_exception(
                    f"Invalid opset '{name}' selected. Opset for domain {ONNX} already defined as "
                    f"{self._opsets[ONNX]}; one is needed for all"
                )
            self._opsets[ONNX] = int(version)
            self.aiOnnx = Domain(self.add, ONNX, self._opsets[ONNX])
        return self.aiOnnx

    def _go_on(self, source: Model) -> None:
        """Begin with a model that is there."""
        model, subject, _ = load_model(source)
        self._graph.CopyFrom(model.graph)
        self._opsets.update(opsets_of(model))
        for values in (self._graph.input, self._graph.initializer):
            names = [value.name for value in values]
            self._names.update(names)
            self._inputs.extend(name for name in names if name not in self._inputs)
        for node in self._graph.node:
            self._names.update(node.output)
            self._nodes |= dict.fromkeys(node.output, node)

    def createSubgraphBuilder(self) -> Builder:
        """Return the builder of a branch, which can read the tensors of this one.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2, 2])
        >>> branch = builder.createSubgraphBuilder()
        >>> branch.addOutputTensor(branch.aiOnnx.neg([x]))
        >>> len(branch.getOutputTensorIds())
        1
        """
        self._children.append(Builder(parent=self))
        return self._children[-1]

    def setGraphName(self, name: str) -> None:
        """Name the graph.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> builder.setGraphName("mine")
        >>> builder.graph_proto.name
        'mine'
        """
        self._graph.name = name

    # Tensors
    def addInputTensor(
        self,
        info: TensorInfo | str,
        shape: Sequence[int] | str | InputSettings = (),
        debugPrefix: str | InputSettings = "",
        debugContext: str = "",
        *,
        settings: InputSettings | None = None,
    ) -> str:
        """Add an input that comes with every batch; give its name.

        After its type and shape, InputSettings may say by which tiles it comes, and when.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2, 2])
        >>> builder.getTensorShape(x)
        [2, 2]
        """
        arguments = [shape, debugPrefix, debugContext]
        settings = next((one for one in arguments if isinstance(one, InputSettings)), settings)
        names = [one for one in arguments if isinstance(one, str) and one]
        sizes = () if isinstance(shape, str | InputSettings) else shape
        if isinstance(info, str):
            info = TensorInfo(info, sizes)
        if not isinstance(info, TensorInfo):
            raise popart_exception(f"addInputTensor: {info!r}; a TensorInfo is needed")
        name = self._new(names[0] if names else "input")
        self._graph.input.append(_value(name, info))
        self._inputs.append(name)
        if settings is not None:
            note_settings(self._graph.input[-1], settings)
        return name

    def addUntypedInputTensor(self, debugPrefix: str = "", debugContext: str = "") -> str:
        """Add an input of a graph within, whose type its caller gives; give its name.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> body = builder.createSubgraphBuilder()
        >>> body.addUntypedInputTensor("x")
        'x'
        """
        if self._parent is None:
            raise popart_exception(
                "Can not add untyped tensors to the top-level graph. addInputTensor gives a type"
            )
        name = self._new(debugPrefix or debugContext or "input")
        self._graph.input.append(helper.make_value_info(name, onnx.TypeProto()))
        self._inputs.append(name)
        return name

    def addInputTensorFromParentGraph(self, tensorId: str) -> None:
        """Take a tensor of the graph around a branch, which can be read as it is.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2, 2])
        >>> branch = builder.createSubgraphBuilder()
        >>> branch.addInputTensorFromParentGraph(x)
        >>> branch.addOutputTensor(branch.aiOnnx.neg([x]))
        >>> branch.graph_proto.node[0].input == [x]
        True
        """
        self._check_tensor(tensorId, "addInputTensorFromParentGraph")

    def addInitializedInputTensor(
        self,
        values: object,
        *more: str | VariableSettings,
        debugPrefix: str = "",
        debugContext: str = "",
    ) -> str:
        """Add a weight with its values; give its name.

        What follows is the name, and which replicas share it: then it has the weights of all groups
        along a first axis.

        >>> import numpy as np
        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> w = builder.addInitializedInputTensor(np.float32([1.0, 2.0]), "w")
        >>> builder.isInitializer(w)
        True
        """
        array = np.asarray(values)
        array_type(array, "addInitializedInputTensor")
        names = [one for one in more if not isinstance(one, VariableSettings)]
        name = self._new((*names, debugPrefix or debugContext or "init_input")[0])
        self._graph.initializer.append(typed_tensor(array, name))
        for settings in more:
            if isinstance(settings, VariableSettings):
                settings.note(self._graph.initializer[-1])
        self._inputs.append(name)
        return name

    def embedReplicationFactor(self, replicationFactor: int) -> None:
        """Take the number of replicas, by which the shape of what groups share is known here.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> builder.embedReplicationFactor(2)
        """
        self._replicas = int(replicationFactor)

    def addOutputTensor(self, name: str) -> None:
        """Make a tensor an output of the model.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2, 2])
        >>> y = builder.aiOnnx.relu([x])
        >>> builder.addOutputTensor(y)
        >>> builder.getOutputTensorIds() == [y]
        True
        """
        self._check_tensor(name, "addOutputTensor")
        if name not in self.getOutputTensorIds():
            self._graph.output.append(helper.make_value_info(name, onnx.TypeProto()))

    def getInputTensorIds(self) -> list[str]:
        """Name inputs and weights, in the order in which they were added.

        >>> import numpy as np
        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> w = builder.addInitializedInputTensor(np.float32([1.0, 2.0]), "w")
        >>> x = builder.addInputTensor("FLOAT", [2], "x")
        >>> builder.getInputTensorIds() == [w, x]
        True
        """
        return list(self._inputs)

    def getOutputTensorIds(self) -> list[str]:
        """Name the outputs.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2, 2])
        >>> builder.addOutputTensor(builder.aiOnnx.relu([x]))
        >>> len(builder.getOutputTensorIds())
        1
        """
        return [value.name for value in self._graph.output]

    def getTrainableTensorIds(self) -> list[str]:
        """Name the weights.

        >>> import numpy as np
        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> w = builder.addInitializedInputTensor(np.float32([1.0, 2.0]), "w")
        >>> builder.getTrainableTensorIds() == [w]
        True
        """
        return [tensor.name for tensor in self._graph.initializer]

    def getValueTensorIds(self) -> list[str]:
        """Name what nodes make, and the outputs.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2, 2])
        >>> y = builder.aiOnnx.relu([x])
        >>> builder.addOutputTensor(y)
        >>> builder.getValueTensorIds() == [y]
        True
        """
        return [name for node in self._graph.node for name in node.output]

    def saveInitializersExternally(self, ids: Iterable[str], filename: str) -> None:
        """Move the values of weights to a file, which the model then names.

        >>> import numpy as np
        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> w = builder.addInitializedInputTensor(np.float32([1.0, 2.0]), "w")
        >>> import tempfile
        >>> from pathlib import Path
        >>> path = Path(tempfile.mkdtemp()) / "weights.bin"
        >>> builder.saveInitializersExternally([w], str(path))
        >>> path.stat().st_size
        8
        """
        caller = "saveInitializersExternally"
        save_externally(self._graph.initializer, ids, str(filename), caller)

    def isInitializer(self, id: str) -> bool:
        """Return whether a tensor is a weight.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2, 2])
        >>> builder.isInitializer(x)
        False
        """
        return id in self.getTrainableTensorIds()

    def getTensorShape(self, id: str) -> list[int]:
        """Return the shape of a tensor; raises popart_exception where it cannot be known.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2, 2])
        >>> builder.getTensorShape(builder.aiOnnx.concat([x, x], 0))
        [4, 2]
        """
        return self._info(id, "getTensorShape").shape()

    def getTensorDtypeString(self, id: str) -> str:
        """Return the type of a tensor in NumPy's words: float32.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2, 2])
        >>> builder.getTensorDtypeString(x)
        'float32'
        """
        return self._info(id, "getTensorDtypeString").data_type_lcase()

    def _info(self, name: str, caller: str) -> TensorInfo:
        self._check_tensor(name, caller)
        model = of_one_group(onnx.ModelProto.FromString(self.getModelProto()), self._replicas)
        del model.graph.output[:]
        infos = known_infos(model)
        if name not in infos:
            raise popart_exception(f"{caller}: the type and shape of {name!r} are not known")
        return infos[name]

    def _shape_if_known(self, name: str) -> list[int] | None:
        """Return the shape of an input or weight; None of what nodes make."""
        for value in self._graph.input:
            if value.name == name and value.type.tensor_type.HasField("shape"):
                return [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        dims = (list(t.dims) for t in self._graph.initializer if t.name == name)
        return next(dims, None)

    def _new(self, base: str) -> str:
        """Return a name that no tensor has here, in a graph around or in a branch within."""
        base = self._scoped(base)
        taken_names = [builder._names for builder in (*self._around(), *self._within_it())]
        name, count = base, 0
        while any(name in names for names in taken_names):
            count += 1
            name = f"{base}/{count}"
        self._names.add(name)
        return name

    def _around(self) -> Iterator[Builder]:
        """Return this builder and those of the graphs around, whose tensors can be read."""
        builder: Builder | None = self
        while builder is not None:
            yield builder
            builder = builder._parent

    def _within_it(self) -> Iterator[Builder]:
        for child in self._children:
            yield child
            yield from child._within_it()

    def _check_tensor(self, name: str, caller: str) -> None:
        if not any(name in builder._names for builder in self._around()):
            raise popart_exception(f"{caller}: no tensor {name!r} in the builder")

    # Operators
    def add(
        self,
        domain: str,
        signature: Signature,
        inputs: Sequence[str],
        attributes: Mapping[str, object],
        name: str,
        outputs: int = 1,
    ) -> str | list[str]:
        """Add a node; give the name of its output, or of all if it has several.

        As in PopART, output 0 of an Add is `Add:0` and that of the next `Add:0/1`; scopes come
        before them, and a node's own name is not part of them.

        >>> from simulator import popart
        >>> from simulator.popart.operators.signatures import Signature
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2])
        >>> builder.add("ai.onnx", Signature("Relu", ()), [x], {}, "")
        'Relu:0'
        """
        subject = f"{domain}.{signature.operator}"
        for tensor in filter(None, inputs):
            self._check_tensor(tensor, subject)
        signature.check(attributes, len(inputs), subject)
        if signature.operator in WINDOWED and inputs:
            check_window(signature.operator, inputs, attributes, self._shape_if_known)
        count = max(outputs, signature.outputs) if signature.outputs else 0
        output_names = [self._new(f"{signature.operator}:{place}") for place in range(count)]
        numbers = {
            name: type_number(attributes[name], subject) for name in TYPED if name in attributes
        }
        node = helper.make_node(
            signature.operator,
            list(inputs),
            output_names,
            self._scoped(name) if name else next(iter(output_names), subject),
            domain="" if domain == ONNX else domain,
        )
        empty = ("axes",) if names_no_axis(signature.operator, attributes) else ()
        node.attribute.extend(
            attribute_of(key, value, signature.kinds.get(key), subject)
            for key, value in {**attributes, **numbers}.items()
            if is_set(value) or key in empty
        )
        if signature.operator == "Scan":
            annotate(node, SLICES_ATTRIBUTE, 1)
        for where in self._where:
            for key, value in where.items():
                annotate(node, key, value)
        self._graph.node.append(node)
        for tensor in output_names:
            self._nodes[tensor] = self._graph.node[-1]
        return output_names[0] if count == 1 else output_names

    def customOp(
        self,
        opName: str,
        opVersion: int,
        domain: str,
        inputs: Sequence[str],
        attributes: Mapping[str, object] | None = None,
        numOutputs: int = 1,
        name: str = "",
    ) -> list[str]:
        """Add a node of any operator; give the names of its outputs.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2, 2])
        >>> outputs = builder.customOp("Cube", 1, "com.mine", [x], numOutputs=2)
        >>> len(outputs)
        2
        """
        self._opsets[domain] = max(opVersion, self._opsets.get(domain, 0))
        signature = Signature(opName, tuple(attributes or ()), numOutputs)
        outputs = self.add(domain, signature, inputs, attributes or {}, name, numOutputs)
        return [outputs] if isinstance(outputs, str) else outputs

    def reshape_const(
        self, aiOnnx: Domain, args: Sequence[str], shape: Iterable[int], debugContext: str = ""
    ) -> str | list[str]:
        """Add a reshape to sizes that are known.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2, 2])
        >>> y = builder.reshape_const(builder.aiOnnx, [x], [4])
        >>> builder.getTensorShape(y)
        [4]
        """
        sizes = aiOnnx.constant(np.array(list(shape), dtype=np.int64), f"{debugContext}_const")
        output: str | list[str] = aiOnnx.reshape([args[0], sizes], debugContext=debugContext)
        return output

    # The model
    def getModelProto(self) -> bytes:
        """Return the model as a serialised ModelProto.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2, 2])
        >>> import onnx
        >>> builder.addOutputTensor(builder.aiOnnx.relu([x]))
        >>> onnx.load_from_string(builder.getModelProto()).graph.node[0].op_type
        'Relu'
        """
        opsets = [
            helper.make_opsetid("" if domain == ONNX else domain, version)
            for domain, version in self._opsets.items()
        ]
        model = helper.make_model(self._graph, opset_imports=opsets, ir_version=IR_VERSION)
        return bytes(model.SerializeToString())

    def saveModelProto(self, path: str) -> None:
        """Write the model to a file.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2, 2])
        >>> import tempfile
        >>> from pathlib import Path
        >>> builder.addOutputTensor(builder.aiOnnx.relu([x]))
        >>> path = Path(tempfile.mkdtemp()) / "model.onnx"
        >>> builder.saveModelProto(path)
        >>> path.exists()
        True
        """
        with open(path, "wb") as file:
            file.write(self.getModelProto())


def _value(name: str, info: TensorInfo) -> onnx.ValueInfoProto:
    number = ELEMENT_TYPES[info.type].onnx
    return helper.make_tensor_value_info(name, number, info.dims)
