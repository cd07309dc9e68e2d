"""What a builder notes in nodes: where they go and how they are planned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from numbers import Integral
from typing import Any, overload

import onnx
from onnx import helper

from simulator.popart.errors import popart_exception
from simulator.popart.representation.ir import (
    DITHERING_ATTRIBUTE,
    EXCLUDED_ATTRIBUTE,
    GROUP_ATTRIBUTE,
    IPU_ATTRIBUTE,
    MEMORY_ATTRIBUTE,
    PARTIALS_ATTRIBUTE,
    PHASE_ATTRIBUTE,
    RECOMPUTE_ATTRIBUTE,
    SERIAL_FACTOR,
    SERIAL_MODE,
    STAGE_ATTRIBUTE,
)
from simulator.popart.settings.choices import CommGroup, CommGroupType
from simulator.popart.settings.names import RecomputeType

Tensors = str | Iterable[str]
_Kind = onnx.AttributeProto


def annotate(node: onnx.NodeProto, key: str, value: object) -> None:
    """Note a value in a node, in place of what it has had."""
    remaining = [attribute for attribute in node.attribute if attribute.name != key]
    del node.attribute[:]
    kind = _kind_of_none(node, key) if isinstance(value, list | tuple) and not value else None
    node.attribute.extend([*remaining, helper.make_attribute(key, value, attr_type=kind)])


def _kind_of_none(node: onnx.NodeProto, key: str) -> int:
    """Return of which kind an empty list is: as ONNX declares it, otherwise of whole numbers."""
    if onnx.defs.has(node.op_type, node.domain):
        declared = onnx.defs.get_schema(node.op_type, node.domain).attributes.get(key)
        if declared is not None:
            return int(declared.type.value)
    return int(_Kind.INTS)


class Notes:
    """The methods of a builder that note something in the nodes that make tensors."""

    _nodes: dict[str, onnx.NodeProto]  # by what they make
    _where: list[dict[str, Any]]
    _scopes: list[str]

    @overload
    def virtualGraph(self, number: int, /) -> AbstractContextManager[None]: ...
    @overload
    def virtualGraph(self, tensors: Tensors, number: int, /) -> None: ...
    def virtualGraph(self, *arguments: object) -> object:
        """Place nodes on an IPU: virtualGraph(tensors, ipu), or `with virtualGraph(ipu):`.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2])
        >>> with builder.virtualGraph(1):
        ...     y = builder.aiOnnx.relu([x])
        >>> builder.getVirtualGraph(y)
        1
        """
        return self._placed(IPU_ATTRIBUTE, "virtualGraph", arguments)

    def commGroup(
        self, type: CommGroupType = CommGroupType.All, size: int = 0
    ) -> AbstractContextManager[None]:
        """Let collective operations be of a group of replicas: `with commGroup(type, size):`.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2])
        >>> with builder.commGroup(popart.CommGroupType.Consecutive, 2):
        ...     y = builder.aiGraphcore.replicatedallreduce([x])
        >>> builder.getInt64VectorNodeAttribute("__collectiveCommGroup", y)[-1]
        2
        """
        return self._within({GROUP_ATTRIBUTE: list(CommGroup(type, size))})

    @overload
    def pipelineStage(self, number: int, /) -> AbstractContextManager[None]: ...
    @overload
    def pipelineStage(self, tensors: Tensors, number: int, /) -> None: ...
    def pipelineStage(self, *arguments: object) -> object:
        """Return in which stage of a pipeline nodes are, which has to be the place of their IPU.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2])
        >>> y = builder.aiOnnx.relu([x])
        >>> builder.pipelineStage(y, 1)
        >>> builder.getInt64NodeAttribute("__pipeline_stage", y)
        1
        """
        return self._placed(STAGE_ATTRIBUTE, "pipelineStage", arguments)

    @overload
    def executionPhase(self, number: int, /) -> AbstractContextManager[None]: ...
    @overload
    def executionPhase(self, tensors: Tensors, number: int, /) -> None: ...
    def executionPhase(self, *arguments: object) -> object:
        """Note a phase, which has no meaning without VirtualGraphMode.ExecutionPhases.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2])
        >>> y = builder.aiOnnx.relu([x])
        >>> builder.executionPhase(y, 2)
        >>> builder.getInt64NodeAttribute("__execution_phase", y)
        2
        """
        return self._placed(PHASE_ATTRIBUTE, "executionPhase", arguments)

    def hasVirtualGraph(self) -> bool:
        """Return whether `with virtualGraph(ipu):` is around.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> with builder.virtualGraph(1):
        ...     inside = builder.hasVirtualGraph()
        >>> inside, builder.hasVirtualGraph()
        (True, False)
        """
        return any(IPU_ATTRIBUTE in where for where in self._where)

    def hasPipelineStage(self) -> bool:
        """Return whether `with pipelineStage(number):` is around.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> with builder.pipelineStage(1):
        ...     inside = builder.hasPipelineStage()
        >>> inside, builder.hasPipelineStage()
        (True, False)
        """
        return any(STAGE_ATTRIBUTE in where for where in self._where)

    def hasExecutionPhase(self) -> bool:
        """Return whether `with executionPhase(number):` is around.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> with builder.executionPhase(2):
        ...     inside = builder.hasExecutionPhase()
        >>> inside, builder.hasExecutionPhase()
        (True, False)
        """
        return any(PHASE_ATTRIBUTE in where for where in self._where)

    def getVirtualGraph(self, nodeOutputNames: Tensors | None = None) -> int:
        """Return the IPU of what makes tensors, or of the `with` around.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2])
        >>> y = builder.aiOnnx.relu([x])
        >>> builder.virtualGraph(y, 1)
        >>> builder.getVirtualGraph(y)
        1
        """
        return self._number(IPU_ATTRIBUTE, "Virtual graph", nodeOutputNames)

    def getPipelineStage(self) -> int:
        """Return the stage of the `with` around; raises popart_exception without one.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> with builder.pipelineStage(1):
        ...     builder.getPipelineStage()
        1
        """
        return self._number(STAGE_ATTRIBUTE, "Pipeline stage", None)

    def getExecutionPhase(self) -> int:
        """Return the phase of the `with` around; raises popart_exception without one.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> with builder.executionPhase(2):
        ...     builder.getExecutionPhase()
        2
        """
        return self._number(PHASE_ATTRIBUTE, "Execution phase", None)

    def _number(self, key: str, caller: str, tensors: Tensors | None) -> int:
        values = [where[key] for where in self._where if key in where][-1:]
        if tensors is not None:
            noted = self._noted(key, tensors, None)
            values = [] if noted is None else [noted]
        if not values:
            raise popart_exception(f"{caller} not set in current scope")
        return int(values[0])

    def setPartialsType(self, nodeOutputNames: Tensors, partialsType: str) -> None:
        """Choose the type of the parts of a convolution's or product's sums: HALF or FLOAT.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> a, b = (builder.addInputTensor("FLOAT16", [2, 2]) for _ in range(2))
        >>> y = builder.aiOnnx.matmul([a, b])
        >>> builder.setPartialsType(y, "HALF")
        >>> builder.getPartialsType(y)
        'HALF'
        """
        kind = str(getattr(partialsType, "value", partialsType)).lower()
        if kind not in ("half", "float"):
            raise popart_exception(f"setPartialsType: {partialsType!r}; known are HALF, FLOAT")
        self._note(PARTIALS_ATTRIBUTE, kind, nodeOutputNames)

    def getPartialsType(self, nodeOutputNames: Tensors) -> str:
        """Return the type that `setPartialsType` has chosen, FLOAT without it.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> a, b = (builder.addInputTensor("FLOAT16", [2, 2]) for _ in range(2))
        >>> builder.getPartialsType(builder.aiOnnx.matmul([a, b]))
        'FLOAT'
        """
        return str(self._noted(PARTIALS_ATTRIBUTE, nodeOutputNames, "float")).upper()

    def setAvailableMemoryProportion(
        self, nodeOutputNames: Tensors, availableMemoryProportion: float
    ) -> None:
        """Choose the share of a tile's memory that a convolution or product may take.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> a, b = (builder.addInputTensor("FLOAT", [2, 2]) for _ in range(2))
        >>> y = builder.aiOnnx.matmul([a, b])
        >>> builder.setAvailableMemoryProportion(y, 0.25)
        >>> builder.getFloatNodeAttribute("__available_memory", y)
        0.25
        """
        share = availableMemoryProportion
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise popart_exception(f"availableMemoryProportion must be in (0,1], not {share!r}")
        self._note(MEMORY_ATTRIBUTE, float(share), nodeOutputNames)

    def recomputeOutputInBackwardPass(
        self, nodeOutputNames: Tensors, value: RecomputeType | bool = RecomputeType.Recompute
    ) -> None:
        """Let the way back make again what nodes make, which is not kept till then.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2])
        >>> y = builder.aiOnnx.relu([x])
        >>> builder.recomputeOutputInBackwardPass(y)
        >>> builder.getRecomputeOutputInBackwardPass(y)
        True
        """
        if isinstance(value, bool):
            value = RecomputeType.Recompute if value else RecomputeType.Checkpoint
        if not isinstance(value, RecomputeType):
            raise popart_exception(f"recomputeOutput: {value!r}; a RecomputeType is needed")
        self._note(RECOMPUTE_ATTRIBUTE, value.value, nodeOutputNames)

    recomputeOutput = recomputeOutputInBackwardPass

    def getRecomputeOutputInBackwardPass(self, nodeOutputNames: Tensors) -> bool:
        """Return whether the way back makes again what a node makes.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2])
        >>> y = builder.aiOnnx.relu([x])
        >>> builder.getRecomputeOutputInBackwardPass(y)
        False
        """
        noted = self._noted(RECOMPUTE_ATTRIBUTE, nodeOutputNames, 0)
        return bool(noted == RecomputeType.Recompute.value)

    def checkpointOutput(self, nodeOutputNames: Tensors) -> list[str]:
        """Keep what nodes make, whatever is recomputed; give the names of the tensors.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2])
        >>> y = builder.aiOnnx.relu([x])
        >>> builder.recomputeOutputInBackwardPass(y)
        >>> builder.checkpointOutput(y) == [y]
        True
        >>> builder.getRecomputeOutputInBackwardPass(y)
        False
        """
        self.recomputeOutputInBackwardPass(nodeOutputNames, RecomputeType.Checkpoint)
        return [nodeOutputNames] if isinstance(nodeOutputNames, str) else list(nodeOutputNames)

    def addNodeAttribute(
        self, attributeName: str, attributeValue: object, nodeOutputNames: Tensors
    ) -> None:
        """Note a value in the nodes that make tensors; raises popart_exception where one is.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2])
        >>> y = builder.aiOnnx.relu([x])
        >>> builder.addNodeAttribute("colour", "blue", y)
        >>> builder.getStringNodeAttribute("colour", y)
        'blue'
        """
        for node in self._makers(nodeOutputNames, attributeName):
            if any(attribute.name == attributeName for attribute in node.attribute):
                raise popart_exception(f"Node already has attribute {attributeName}.")
            annotate(node, attributeName, attributeValue)

    def removeNodeAttribute(self, attributeName: str, nodeOutputNames: Tensors) -> None:
        """Take a value out of the nodes that make tensors; raises popart_exception without one.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2])
        >>> y = builder.aiOnnx.relu([x])
        >>> builder.addNodeAttribute("colour", "blue", y)
        >>> builder.removeNodeAttribute("colour", y)
        >>> builder.nodeHasAttribute("colour", y)
        False
        """
        for node in self._makers(nodeOutputNames, attributeName):
            remaining = [
                attribute for attribute in node.attribute if attribute.name != attributeName
            ]
            if len(remaining) == len(node.attribute):
                raise popart_exception(
                    f"Cannot remove attribute {attributeName} as it does not exist."
                )
            del node.attribute[:]
            node.attribute.extend(remaining)

    def getInt64NodeAttribute(self, attributeName: str, nodeOutputNames: Tensors) -> int:
        """Return a noted whole number; raises popart_exception for another kind.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2])
        >>> y = builder.aiOnnx.concat([x, x], axis=0)
        >>> builder.getInt64NodeAttribute("axis", y)
        0
        """
        return int(self._attribute(attributeName, nodeOutputNames, _Kind.INT, "an integer"))

    def getInt64VectorNodeAttribute(
        self, attributeName: str, nodeOutputNames: Tensors
    ) -> list[int]:
        """Return noted whole numbers; raises popart_exception for another kind.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2, 3])
        >>> y = builder.aiOnnx.transpose([x], perm=[1, 0])
        >>> builder.getInt64VectorNodeAttribute("perm", y)
        [1, 0]
        """
        kind = "an integer vector"
        return list(self._attribute(attributeName, nodeOutputNames, _Kind.INTS, kind))

    def getFloatNodeAttribute(self, attributeName: str, nodeOutputNames: Tensors) -> float:
        """Return a noted number; raises popart_exception for another kind.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2])
        >>> y = builder.aiOnnx.leakyrelu([x], alpha=0.5)
        >>> builder.getFloatNodeAttribute("alpha", y)
        0.5
        """
        return float(self._attribute(attributeName, nodeOutputNames, _Kind.FLOAT, "a float"))

    def getFloatVectorNodeAttribute(
        self, attributeName: str, nodeOutputNames: Tensors
    ) -> list[float]:
        """Return noted numbers; raises popart_exception for another kind.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2])
        >>> y = builder.aiOnnx.relu([x])
        >>> builder.addNodeAttribute("shares", [0.25, 0.75], y)
        >>> builder.getFloatVectorNodeAttribute("shares", y)
        [0.25, 0.75]
        """
        kind = "a float vector"
        return list(self._attribute(attributeName, nodeOutputNames, _Kind.FLOATS, kind))

    def getStringNodeAttribute(self, attributeName: str, nodeOutputNames: Tensors) -> str:
        """Return a noted text; raises popart_exception for another kind.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2])
        >>> y = builder.aiOnnx.relu([x])
        >>> builder.addNodeAttribute("colour", "blue", y)
        >>> builder.getStringNodeAttribute("colour", y)
        'blue'
        """
        text: bytes = self._attribute(attributeName, nodeOutputNames, _Kind.STRING, "a string")
        return text.decode()

    def getStringVectorNodeAttribute(
        self, attributeName: str, nodeOutputNames: Tensors
    ) -> list[str]:
        """Return noted texts; raises popart_exception for another kind.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2])
        >>> y = builder.aiOnnx.relu([x])
        >>> builder.addNodeAttribute("colours", ["blue", "red"], y)
        >>> builder.getStringVectorNodeAttribute("colours", y)
        ['blue', 'red']
        """
        kind = "a string vector"
        texts = self._attribute(attributeName, nodeOutputNames, _Kind.STRINGS, kind)
        return [text.decode() for text in texts]

    def _attribute(self, name: str, tensors: Tensors, kind: int, kind_text: str) -> Any:
        for node in self._makers(tensors, name):
            for attribute in node.attribute:
                if attribute.name == name and attribute.type != kind:
                    raise popart_exception(f"{name}: Node {name} is not {kind_text}.")
                if attribute.name == name:
                    return helper.get_attribute_value(attribute)
        raise popart_exception(f"Node does not have an attribute {name}.")

    def nodeHasAttribute(self, attributeName: str, nodeOutputNames: Tensors) -> bool:
        """Return whether the node that makes tensors has a value noted.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2])
        >>> y = builder.aiOnnx.concat([x, x], axis=0)
        >>> builder.nodeHasAttribute("axis", y), builder.nodeHasAttribute("perm", y)
        (True, False)
        """
        return attributeName in self.getAllNodeAttributeNames(nodeOutputNames)

    def getAllNodeAttributeNames(self, nodeOutputNames: Tensors) -> list[str]:
        """Name what the node that makes tensors has.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2])
        >>> y = builder.aiOnnx.concat([x, x], axis=0)
        >>> builder.getAllNodeAttributeNames(y)
        ['axis']
        """
        nodes = self._makers(nodeOutputNames, "getAllNodeAttributeNames")
        return [attribute.name for node in nodes for attribute in node.attribute]

    def setInplacePreferences(self, nodeOutputName: str, prefs: Mapping[str, float]) -> None:
        """Take preferences of operations in place; here whoever reads a tensor decides.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2])
        >>> y = builder.aiOnnx.relu([x])
        >>> builder.setInplacePreferences(y, {"ReluInplace": 1000.0})
        >>> builder.getAllNodeAttributeNames(y)
        []
        """
        self._makers(nodeOutputName, "setInplacePreferences")

    def excludePatterns(self, nodeOutputName: Tensors, patternNames: Iterable[str]) -> None:
        """Note patterns that shall leave a node alone; a session refuses names that are none.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2])
        >>> y = builder.aiOnnx.relu([x])
        >>> builder.excludePatterns(y, ["OpToIdentity"])
        >>> builder.getStringVectorNodeAttribute("__exclude_patterns", y)
        ['OpToIdentity']
        """
        names = list(patternNames)
        if names:
            self._note(EXCLUDED_ATTRIBUTE, names, nodeOutputName)

    def setSerializeMatMul(
        self,
        nodeOutputNames: Tensors,
        mode: str,
        factor: int = 0,
        keep_precision: bool = False,
    ) -> None:
        """Note that a product is made in parts, which saves memory; here it is made at once.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> a, b = (builder.addInputTensor("FLOAT", [4, 4]) for _ in range(2))
        >>> y = builder.aiOnnx.matmul([a, b])
        >>> builder.setSerializeMatMul(y, "output_channels", 2)
        >>> builder.getInt64NodeAttribute("__serialize_matmul_factor", y)
        2
        """
        if mode not in ("none", "input_channels", "reducing_dim", "output_channels"):
            raise popart_exception(
                f"Unsupported mat mul serialization mode '{mode}'. Supported modes are "
                "'input_channels', 'reducing_dim', 'output_channels' or 'none'"
            )
        self._note(SERIAL_MODE, mode, nodeOutputNames)
        self._note(SERIAL_FACTOR, int(factor), nodeOutputNames)

    def setEnableConvDithering(self, nodeOutputNames: Tensors, value: int) -> None:
        """Take that convolutions begin on tiles of their own choice; here on the first ones.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x, w = (builder.addInputTensor("FLOAT", [1, 1, 3, 3]) for _ in range(2))
        >>> y = builder.aiOnnx.conv([x, w])
        >>> builder.setEnableConvDithering(y, 1)
        >>> builder.getStringNodeAttribute("__enable_conv_dithering", y)
        'true'
        """
        for node in self._makers(nodeOutputNames, "setEnableConvDithering"):
            if node.op_type not in ("Conv", "MultiConv", "ConvTranspose"):
                raise popart_exception(
                    "Builder::setEnableConvDithering should only be called on convolutions but was "
                    f"given: {node.op_type}"
                )
        if value not in (0, 1):
            raise popart_exception("enableConvDithering must be a bool value")
        self._note(DITHERING_ATTRIBUTE, "true" if value else "false", nodeOutputNames)

    def schedulePriority(self, value: float) -> AbstractContextManager[None]:
        """Take which nodes come first; here they come in the order of the model.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2])
        >>> with builder.schedulePriority(5.0):
        ...     y = builder.aiOnnx.relu([x])
        >>> builder.getAllNodeAttributeNames(y)
        []
        """
        return nullcontext()

    def outlineAttributes(self, attributes: Mapping[str, str]) -> AbstractContextManager[None]:
        """Take what sets nodes apart when equal ones are outlined; here their attributes do.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2])
        >>> with builder.outlineAttributes({"block": "first"}):
        ...     y = builder.aiOnnx.relu([x])
        >>> builder.getAllNodeAttributeNames(y)
        []
        """
        return nullcontext()

    def getNameScope(self, name: str = "") -> str:
        """Return what is put before names: `layer/`, and the name behind it.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> with builder.nameScope("layer"):
        ...     builder.getNameScope("weights")
        'layer/weights'
        """
        return "".join(f"{scope}/" for scope in self._scopes) + name

    @contextmanager
    def nameScope(self, name: str) -> Iterator[None]:
        """Put a name before those of nodes and tensors: `with nameScope("layer"):`.

        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2])
        >>> with builder.nameScope("layer"):
        ...     builder.aiOnnx.relu([x])
        'layer/Relu:0'
        """
        self._scopes.append(str(name))
        try:
            yield
        finally:
            self._scopes.pop()

    def _scoped(self, name: str) -> str:
        return "/".join([*self._scopes, *([name] if name else [])])

    def _note(self, key: str, value: object, tensors: Tensors) -> None:
        for node in self._makers(tensors, key):
            annotate(node, key, value)

    def _makers(self, tensors: Tensors, caller: str) -> list[onnx.NodeProto]:
        names = [tensors] if isinstance(tensors, str) else list(tensors)
        for tensor in names:
            if tensor not in self._nodes:
                raise popart_exception(f"{caller}: {tensor!r} is made by no node of the builder")
        return list({id(node): node for node in (self._nodes[one] for one in names)}.values())

    def _noted(self, key: str, tensors: Tensors, default: object) -> Any:
        for node in self._makers(tensors, key):
            for attribute in node.attribute:
                if attribute.name == key:
                    value = helper.get_attribute_value(attribute)
                    return value.decode() if isinstance(value, bytes) else value
        return default

    def _placed(self, key: str, caller: str, arguments: Sequence[Any]) -> object:
        value = arguments[-1] if len(arguments) in (1, 2) else None
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 0:
            raise popart_exception(f"{caller}: {arguments!r}; [tensors and] a number is needed")
        number = int(value)
        if len(arguments) == 1:
            return self._within({key: number})
        for node in self._makers(arguments[0], caller):
            annotate(node, key, number)
        return None

    @contextmanager
    def _within(self, annotations: Mapping[str, object]) -> Iterator[None]:
        self._where.append(dict(annotations))
        try:
            yield
        finally:
            self._where.pop()
