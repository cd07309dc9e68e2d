"""What a builder notes in nodes: where they go and how they are planned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import onnx
from onnx import helper

from simulator.popart.errors import popart_exception
from simulator.popart.ir import (
    IPU_ATTRIBUTE,
    MEMORY_ATTRIBUTE,
    PARTIALS_ATTRIBUTE,
    PHASE_ATTRIBUTE,
    RECOMPUTE_ATTRIBUTE,
    STAGE_ATTRIBUTE,
)
from simulator.popart.names import RecomputeType

Tensors = str | Iterable[str]


def annotate(node: onnx.NodeProto, key: str, value: Any) -> None:
    """Note a value in a node, in place of what it has had."""
    kept = [attribute for attribute in node.attribute if attribute.name != key]
    del node.attribute[:]
    node.attribute.extend([*kept, helper.make_attribute(key, value)])


class Notes:
    """The methods of a builder that note something in the nodes that make tensors."""

    _nodes: dict[str, onnx.NodeProto]  # by what they make
    _where: list[dict[str, int]]
    _scopes: list[str]

    def virtualGraph(self, *arguments: Any) -> Any:
        """Place nodes on an IPU: virtualGraph(tensors, ipu), or `with virtualGraph(ipu):`."""
        return self._placed(IPU_ATTRIBUTE, "virtualGraph", arguments)

    def pipelineStage(self, *arguments: Any) -> Any:
        """Say in which stage of a pipeline nodes are, which has to be the place of their IPU."""
        return self._placed(STAGE_ATTRIBUTE, "pipelineStage", arguments)

    def executionPhase(self, *arguments: Any) -> Any:
        """Note a phase, which has no meaning without VirtualGraphMode.ExecutionPhases."""
        return self._placed(PHASE_ATTRIBUTE, "executionPhase", arguments)

    def setPartialsType(self, nodeOutputNames: Tensors, partialsType: str) -> None:
        """Choose the type of the parts of a convolution's or product's sums: HALF or FLOAT."""
        kind = str(getattr(partialsType, "value", partialsType)).lower()
        if kind not in ("half", "float"):
            raise popart_exception(f"setPartialsType: {partialsType!r}; known are HALF, FLOAT")
        self.addNodeAttribute(PARTIALS_ATTRIBUTE, kind, nodeOutputNames)

    def getPartialsType(self, nodeOutputNames: Tensors) -> str:
        """Give the type that `setPartialsType` has chosen, FLOAT without it."""
        return str(self._noted(PARTIALS_ATTRIBUTE, nodeOutputNames, "float")).upper()

    def setAvailableMemoryProportion(
        self, nodeOutputNames: Tensors, availableMemoryProportion: float
    ) -> None:
        """Choose the share of a tile's memory that a convolution or product may take."""
        share = availableMemoryProportion
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise popart_exception(
                f"setAvailableMemoryProportion: {share!r}; more than 0 and at most 1 is needed"
            )
        self.addNodeAttribute(MEMORY_ATTRIBUTE, float(share), nodeOutputNames)

    def recomputeOutputInBackwardPass(
        self, nodeOutputNames: Tensors, value: RecomputeType | bool = RecomputeType.Recompute
    ) -> None:
        """Let the way back make again what nodes make, which is not kept till then."""
        if isinstance(value, bool):
            value = RecomputeType.Recompute if value else RecomputeType.Checkpoint
        if not isinstance(value, RecomputeType):
            raise popart_exception(f"recomputeOutput: {value!r}; a RecomputeType is needed")
        self.addNodeAttribute(RECOMPUTE_ATTRIBUTE, value.value, nodeOutputNames)

    recomputeOutput = recomputeOutputInBackwardPass

    def getRecomputeOutputInBackwardPass(self, nodeOutputNames: Tensors) -> bool:
        """Tell whether the way back makes again what a node makes."""
        noted = self._noted(RECOMPUTE_ATTRIBUTE, nodeOutputNames, 0)
        return bool(noted == RecomputeType.Recompute.value)

    def checkpointOutput(self, nodeOutputNames: Tensors) -> list[str]:
        """Keep what nodes make, whatever is recomputed; give the names of the tensors."""
        self.recomputeOutputInBackwardPass(nodeOutputNames, RecomputeType.Checkpoint)
        return [nodeOutputNames] if isinstance(nodeOutputNames, str) else list(nodeOutputNames)

    def addNodeAttribute(
        self, attributeName: str, attributeValue: Any, nodeOutputNames: Tensors
    ) -> None:
        """Note a value in the nodes that make tensors."""
        for node in self._makers(nodeOutputNames, attributeName):
            annotate(node, attributeName, attributeValue)

    def nodeHasAttribute(self, attributeName: str, nodeOutputNames: Tensors) -> bool:
        """Tell whether the node that makes tensors has a value noted."""
        return attributeName in self.getAllNodeAttributeNames(nodeOutputNames)

    def getAllNodeAttributeNames(self, nodeOutputNames: Tensors) -> list[str]:
        """Name what the node that makes tensors has."""
        nodes = self._makers(nodeOutputNames, "getAllNodeAttributeNames")
        return [attribute.name for node in nodes for attribute in node.attribute]

    def setInplacePreferences(self, nodeOutputName: str, prefs: Mapping[str, float]) -> None:
        """Take preferences of operations in place; here whoever reads a tensor decides."""
        self._makers(nodeOutputName, "setInplacePreferences")

    def excludePatterns(self, nodeOutputName: Tensors, patternNames: Iterable[str]) -> None:
        """Take patterns that shall leave a node alone; those here change no values."""
        self._makers(nodeOutputName, "excludePatterns")

    @contextmanager
    def nameScope(self, name: str) -> Iterator[None]:
        """Put a name before those of nodes and tensors: `with nameScope("layer"):`."""
        self._scopes.append(str(name))
        try:
            yield
        finally:
            self._scopes.pop()

    def _scoped(self, name: str) -> str:
        return "/".join([*self._scopes, *([name] if name else [])])

    def _makers(self, tensors: Tensors, what: str) -> list[onnx.NodeProto]:
        names = [tensors] if isinstance(tensors, str) else list(tensors)
        for tensor in names:
            if tensor not in self._nodes:
                raise popart_exception(f"{what}: {tensor!r} is made by no node of the builder")
        return [self._nodes[tensor] for tensor in names]

    def _noted(self, key: str, tensors: Tensors, default: Any) -> Any:
        for node in self._makers(tensors, key):
            for attribute in node.attribute:
                if attribute.name == key:
                    value = helper.get_attribute_value(attribute)
                    return value.decode() if isinstance(value, bytes) else value
        return default

    def _placed(self, key: str, what: str, arguments: Any) -> Any:
        given = arguments[-1] if len(arguments) in (1, 2) else None
        if not isinstance(given, Integral) or isinstance(given, bool) or given < 0:
            raise popart_exception(f"{what}: {arguments!r}; [tensors and] a number is needed")
        number = int(given)
        if len(arguments) == 1:
            return self._within({key: number})
        for node in self._makers(arguments[0], what):
            annotate(node, key, number)
        return None

    @contextmanager
    def _within(self, annotations: Mapping[str, int]) -> Iterator[None]:
        self._where.append(dict(annotations))
        try:
            yield
        finally:
            self._where.pop()
