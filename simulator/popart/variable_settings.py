"""Weights that groups of replicas share, each group one of its own, and what is read of them.

Source: popart `willow/include/popart/variablesettings.hpp`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import onnx

from simulator.graph.types import Array
from simulator.popart.errors import popart_exception
from simulator.popart.importing.model_files.model_file import tensor_values
from simulator.popart.settings.choices import CommGroup, CommGroupType, VariableRetrievalMode

NOTE = "popart.VariableSettings"  # begins the doc_string of an initialiser


class VariableSettings:
    """Which replicas share a weight, and of which of them it is read.

    VariableSettings(CommGroup(...), mode), or VariableSettings(stride, groupSize, mode): of so many
    replicas, so far apart. Without a group all replicas share it.

    >>> pairs = VariableSettings(CommGroup(CommGroupType.Consecutive, 2))
    >>> pairs.groups(4)
    [[0, 1], [2, 3]]
    >>> apart = VariableSettings(2, 2)  # two replicas, two apart
    >>> apart.groups(4)
    [[0, 2], [1, 3]]
    """

    def __init__(
        self, *arguments: CommGroup | VariableRetrievalMode | int,
        mode: VariableRetrievalMode = VariableRetrievalMode.OnePerGroup,
    ) -> None:  # fmt: skip
        modes = [one for one in arguments if isinstance(one, VariableRetrievalMode)]
        groups = [one for one in arguments if isinstance(one, CommGroup)]
        numbers = [one for one in arguments if type(one) is int]
        unknown = len(arguments) - len(modes) - len(groups) - len(numbers)
        if (
            unknown
            or len(modes) > 1
            or len(groups) > 1
            or len(numbers) not in (0, 2)
            or (groups and numbers)
        ):
            raise popart_exception(
                f"VariableSettings: {arguments}; a CommGroup, or a stride and a size, and a "
                "VariableRetrievalMode are known"
            )
        self._mode = modes[0] if modes else mode
        self._group = None if numbers else (groups[0] if groups else CommGroup())
        self._stride, self._size = numbers or (0, self.getSharedVariableDomain().replicaGroupSize)
        self.verify()

    def verify(self) -> None:
        """Raise popart_exception for a group without a size.

        >>> pairs = VariableSettings(CommGroup(CommGroupType.Consecutive, 2))
        >>> pairs.verify()
        """
        kinds = (CommGroupType.Consecutive, CommGroupType.Orthogonal)
        sized = self._group is None or self._group.type in kinds
        if sized and (self._size < 1 or (self._group is None and self._stride < 1)):
            raise popart_exception(
                f"VariableSettings: a group of {self._size} replicas; at least 1 is needed"
            )

    # PopART's getters, under its names.
    def isUsingCommGroup(self) -> bool:
        """Return whether the replicas are a CommGroup, not a stride and a size.

        >>> pairs = VariableSettings(CommGroup(CommGroupType.Consecutive, 2))
        >>> pairs.isUsingCommGroup(), VariableSettings(2, 2).isUsingCommGroup()
        (True, False)
        """
        return self._group is not None

    def getSharedVariableDomain(self) -> CommGroup:
        """Return the CommGroup; raises popart_exception where there is none.

        >>> pairs = VariableSettings(CommGroup(CommGroupType.Consecutive, 2))
        >>> pairs.getSharedVariableDomain().replicaGroupSize
        2
        """
        if self._group is None:
            raise popart_exception(
                "The variable settings were not initialised using a `popart::CommGroup` instance."
            )
        return self._group

    def getCommGroupType(self) -> CommGroupType:
        """Return the kind of the CommGroup; raises popart_exception where there is none.

        >>> pairs = VariableSettings(CommGroup(CommGroupType.Consecutive, 2))
        >>> pairs.getCommGroupType().name
        'Consecutive'
        """
        return self.getSharedVariableDomain().type

    def getStride(self, replicas: int = 0) -> int:
        """Return the distance of the replicas of a group, among so many.

        >>> apart = VariableSettings(2, 2)  # two replicas, two apart
        >>> apart.getStride()
        2
        """
        if self._group is not None and self._group.type is CommGroupType.Orthogonal and replicas:
            return replicas // self._size
        return self._stride if self._group is None else 1

    def getGroupSize(self) -> int:
        """Return the size of a group as it was set; 0 for all replicas.

        >>> pairs = VariableSettings(CommGroup(CommGroupType.Consecutive, 2))
        >>> pairs.getGroupSize()
        2
        """
        return self._size

    def getRetrievalMode(self) -> VariableRetrievalMode:
        """Return of which replicas the weight is read.

        >>> VariableSettings().getRetrievalMode().name
        'OnePerGroup'
        """
        return self._mode

    def getRealGroupSize(self, replicas: int) -> int:
        """Count the replicas of a group, among so many.

        >>> VariableSettings().getRealGroupSize(4)
        4
        """
        if self._group is None:
            return self._size
        whole = {CommGroupType.All: replicas, CommGroupType["None"]: 1}
        return whole.get(self._group.type, self._size)

    def getGroupCount(self, replicas: int) -> int:
        """Count the groups of so many replicas.

        >>> pairs = VariableSettings(CommGroup(CommGroupType.Consecutive, 2))
        >>> pairs.getGroupCount(4)
        2
        """
        return replicas // self.getRealGroupSize(replicas)

    def numReplicasReturningVariable(self, replicas: int) -> int:
        """Count the replicas, of so many, of which the weight is read.

        >>> pairs = VariableSettings(CommGroup(CommGroupType.Consecutive, 2))
        >>> pairs.numReplicasReturningVariable(4)
        2
        """
        every = self._mode is VariableRetrievalMode.AllReplicas
        return replicas if every else self.getGroupCount(replicas)

    def getGroupRepresentative(self, group: int) -> int:
        """Return the first replica of a group.

        >>> pairs = VariableSettings(CommGroup(CommGroupType.Consecutive, 2))
        >>> [pairs.getGroupRepresentative(group) for group in (0, 1)]
        [0, 2]
        """
        kind = None if self._group is None else self._group.type
        if kind is None:
            return group // self._stride * self._stride * self._size + group % self._stride
        by_size = kind is CommGroupType.Consecutive
        return 0 if kind is CommGroupType.All else group * (self._size if by_size else 1)

    def groups(self, replicas: int) -> list[list[int]]:
        """Return the replicas of each group, of so many.

        >>> VariableSettings().groups(4)
        [[0, 1, 2, 3]]
        """
        size, stride = self.getRealGroupSize(replicas), self.getStride(replicas)
        if size < 1 or replicas % (size * stride) or size & (size - 1):
            raise popart_exception(
                f"VariableSettings: groups of {size} of {replicas} replicas; a power of two that "
                "divides them is needed"
            )
        first = [self.getGroupRepresentative(group) for group in range(replicas // size)]
        return [[begin + stride * place for place in range(size)] for begin in first]

    def shapeOnReplica(self, shape: Sequence[int], replicas: int, name: str = "") -> list[int]:
        """Return the shape of a replica's weight, by that of all groups together.

        >>> pairs = VariableSettings(CommGroup(CommGroupType.Consecutive, 2))
        >>> pairs.shapeOnReplica([2, 5], 4)  # two groups
        [5]
        """
        count = self.getGroupCount(replicas)
        if count == 1:
            return list(shape)
        if not shape or shape[0] != count:
            raise popart_exception(
                f"Return mismatch with possibly appended outer dimension of Tensor: {name!r} is of "
                f"shape {list(shape)}; {count} groups are needed"
            )
        return list(shape[1:])

    def shapeOnHost(self, shape: Sequence[int], replicas: int) -> list[int]:
        """Return the shape of the weights of all groups, by that of one.

        >>> pairs = VariableSettings(CommGroup(CommGroupType.Consecutive, 2))
        >>> pairs.shapeOnHost([5], 4)
        [2, 5]
        """
        count = self.getGroupCount(replicas)
        return list(shape) if count == 1 else [count, *shape]

    # Values
    def distances(self, replicas: int) -> list[int]:
        """Return how far the partners of each round are that add up what a group has.

        >>> apart = VariableSettings(2, 2)  # two replicas, two apart
        >>> apart.distances(4)
        [2]
        """
        (group, *_) = self.groups(replicas)
        return [self.getStride(replicas) << turn for turn in range(len(group).bit_length() - 1)]

    def of_replicas(self, values: Array, shape: Sequence[int], replicas: int) -> Array:
        """Return the weight [replicas, *shape] of each, by those of groups, of all, or by one.

        >>> pairs = VariableSettings(CommGroup(CommGroupType.Consecutive, 2))
        >>> pairs.of_replicas(np.array([[7], [8]]), [1], 4).tolist()
        [[7], [7], [8], [8]]
        """
        if values.shape == tuple(shape):
            return np.broadcast_to(values, (replicas, *shape))
        if len(values) == replicas:
            return values
        places = np.zeros(replicas, dtype=np.int64)
        for number, group in enumerate(self.groups(replicas)):
            places[group] = number
        return np.asarray(values[places])

    def read(self, values: Array, replicas: int) -> Array:
        """Return what is read of the weight [replicas, ...] of each.

        >>> pairs = VariableSettings(CommGroup(CommGroupType.Consecutive, 2))
        >>> pairs.read(np.array([1, 2, 3, 4]), 4).tolist()  # of the first of each group
        [1, 3]
        """
        groups = self.groups(replicas)
        if self._mode is VariableRetrievalMode.AllReplicas:
            return values
        if self._mode is VariableRetrievalMode.AllReduceReplicas:
            sums = np.stack([values[group].sum(axis=0) for group in groups])
            return np.asarray(sums if len(groups) > 1 else sums[0])
        first = values[[group[0] for group in groups]]
        return np.asarray(first if len(groups) > 1 else first[0])

    # In a model
    def note(self, tensor: onnx.TensorProto) -> None:
        """Write the settings into an initialiser, where a session finds them.

        >>> pairs = VariableSettings(CommGroup(CommGroupType.Consecutive, 2))
        >>> weight = onnx.TensorProto(name="w")
        >>> pairs.note(weight)
        >>> settings_of([weight])["w"].groups(4)
        [[0, 1], [2, 3]]
        """
        kind = -1 if self._group is None else int(self._group.type)
        tensor.doc_string = " ".join(
            map(str, (NOTE, kind, self._stride, self._size, int(self._mode)))
        )


def of_one_group(
    model: onnx.ModelProto, replicas: int, folder: Path | None = None
) -> onnx.ModelProto:
    """Return a model with the weights of the first group alone, as one of so many replicas has it.

    Raises popart_exception where an initialiser is not of as many groups.
    """
    shared = settings_of(model.graph.initializer)
    if all(settings.getGroupCount(replicas) == 1 for settings in shared.values()):
        return model
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for tensor in changed.graph.initializer:
        if tensor.name in shared and shared[tensor.name].getGroupCount(replicas) > 1:
            shared[tensor.name].shapeOnReplica(tensor.dims, replicas, tensor.name)
            values = tensor_values(tensor, folder, f"initialiser {tensor.name!r}")
            tensor.CopyFrom(onnx.numpy_helper.from_array(values[0], tensor.name))
    return changed


def settings_of(initializers: Iterable[onnx.TensorProto]) -> dict[str, VariableSettings]:
    """Return the settings that initialisers have, by their names; raises popart_exception."""
    return {t.name: _noted(t) for t in initializers if t.doc_string.startswith(NOTE)}


def _noted(tensor: onnx.TensorProto) -> VariableSettings:
    try:
        kind, stride, size, mode = map(int, tensor.doc_string.split()[1:])
        group = [stride, size] if kind < 0 else [CommGroup(CommGroupType(kind), size)]
        return VariableSettings(*group, VariableRetrievalMode(mode))
    except ValueError:
        raise popart_exception(
            f"initialiser {tensor.name!r}: {tensor.doc_string!r} are no VariableSettings"
        ) from None
