"""A tensor: a view of intervals of elements in the arena that holds all variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from operator import index
from types import EllipsisType
from typing import Any, TypeAlias

import numpy as np

from simulator.graph.arguments import refuse_in, refusing
from simulator.graph.errors import PoplarError
from simulator.graph.geometry import strides
from simulator.graph.geometry.intervals import blocks, cut, join, offsets_of, rearranged
from simulator.graph.geometry.patterns import Shifted, placed
from simulator.graph.geometry.strides import Strides, listed
from simulator.graph.tensors.element_view import WHOLE, ElementView, Intervals
from simulator.graph.types import IntArray, Type, checked_shape, checked_type, element_count

PythonSlice = slice  # Tensor has a method of that name
Index: TypeAlias = int | PythonSlice | EllipsisType
Range: TypeAlias = Sequence[int]

MAX_REPEATED = 1 << 27  # elements of a repeated view; each may be an interval of its own


class UpsampleMethod(Enum):
    """What `upsample` puts between elements."""

    REPEAT = "REPEAT"


@refuse_in
class Tensor(ElementView):
    """A view of elements, with Poplar's ways to make other views of them.

    >>> from simulator.trial import Trial
    >>> x = Trial().tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> x.transpose().shape
    (3, 2)
    """

    __slots__ = ()

    # Parts
    def slice(
        self, begin: int | Range, end: int | Range | None = None, dimension: int = 0
    ) -> Tensor:
        """Take [begin, end) of one dimension, or of every dimension when both are lists.

        A pair may stand for both numbers: slice((begin, end), dimension).

        >>> from simulator.trial import Trial
        >>> trial = Trial()
        >>> x = trial.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> trial.values(x.slice(1, 3, 1))
        [[2.0, 3.0], [5.0, 6.0]]
        """
        if isinstance(begin, int) and isinstance(end, int):
            return self._slice_dimension(begin, end, self._checked_dimension(dimension))
        if isinstance(begin, Sequence) and isinstance(end, Sequence):
            return self._slice_all(begin, end)
        if isinstance(begin, Sequence) and not isinstance(end, Sequence):
            return self._slice_pair(begin, dimension if end is None else end)
        return self._slice_pair((begin, end), dimension)

    def _slice_pair(self, pair: object, dimension: int) -> Tensor:
        numbers = self._numbers(pair)
        if len(numbers) != 2:
            raise PoplarError(f"{self!r}: slice of {pair!r}; a begin and an end are needed")
        return self._slice_dimension(numbers[0], numbers[1], self._checked_dimension(dimension))

    def _slice_all(self, lows: Range, highs: Range) -> Tensor:
        if not len(lows) == len(highs) == len(self.shape):
            raise PoplarError(
                f"{self!r}: slice({list(lows)}, {list(highs)}) needs {self.rank()} numbers each"
            )
        result = self
        try:
            for axis, low in enumerate(lows):
                result = result._slice_dimension(index(low), index(highs[axis]), axis)
        except TypeError:
            raise PoplarError(f"{self!r}: slice({lows!r}, {highs!r}) needs numbers") from None
        return result

    def _numbers(self, bounds: object) -> list[int]:
        try:
            return list(map(index, bounds))  # type: ignore[call-overload]
        except TypeError:
            raise PoplarError(f"{self!r}: slice of {bounds!r}; numbers are needed") from None

    def slices(
        self, intervals: Sequence[int | Range | Sequence[Range]], dimension: int = 0
    ) -> list[Tensor]:
        """Take several slices: of one index, of a pair, or of a list of pairs laid end to end.

        >>> from simulator.trial import Trial
        >>> trial = Trial()
        >>> x = trial.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> trial.values(*x.slices([(0, 1), (1, 3)], 1))
        [[[1.0], [4.0]], [[2.0, 3.0], [5.0, 6.0]]]
        """
        return [self._several(item, dimension) for item in intervals]

    def _several(self, item: Any, dimension: int) -> Tensor:
        if isinstance(item, WHOLE):
            return self.slice(int(item), int(item) + 1, dimension)
        if all(isinstance(part, Sequence) for part in item):
            return concat([self.slice(part, dimension) for part in item], dimension)
        return self.slice(item, dimension)

    def _slice_dimension(self, begin: int, end: int, axis: int) -> Tensor:
        size = self.shape[axis]
        if not 0 <= begin <= end <= size:
            raise PoplarError(
                f"{self!r}: slice [{begin}, {end}) of dimension {axis}; its size is {size}"
            )
        if begin == 0 and end == size:
            return self
        shape = (*self.shape[:axis], end - begin, *self.shape[axis + 1 :])
        return self.at(shape, self._cut_dimension(begin, end, axis))

    def _cut_dimension(self, begin: int, end: int, axis: int) -> Intervals | Strides:
        """Return the places of [begin, end) of one dimension."""
        if isinstance(self.places, Strides):
            stepped = strides.sliced(self.places, self.shape, axis, begin, end)
            if stepped is not None:
                return stepped
        inner = element_count(self.shape[axis + 1 :])
        rows = element_count(self.shape[:axis])
        size = (end - begin) * inner
        low = np.arange(rows, dtype=np.int64) * (self.shape[axis] * inner) + begin * inner
        begins, lengths, _ = cut(*self.intervals(), low, low + size)
        return join(begins, lengths)

    def __getitem__(self, part: Index | tuple[Index, ...]) -> Tensor:
        """Index or slice as in Python; negative numbers count from the end."""
        if isinstance(part, int):
            return self._pick(part, 0)
        result, axis = self, 0
        for item in self._whole_index(part if isinstance(part, tuple) else (part,)):
            if isinstance(item, slice):
                result, axis = result._python_slice(item, axis), axis + 1
            else:
                result = result._pick(item, axis)
        return result

    def _whole_index(self, parts: tuple[Index, ...]) -> list[int | PythonSlice]:
        """Replace an ellipsis by slices of all dimensions that have no index."""
        named = [part for part in parts if not isinstance(part, EllipsisType)]
        if len(named) > self.rank() or len(parts) > len(named) + 1:
            raise PoplarError(f"{self!r}: {len(parts)} indexes for {self.rank()} dimensions")
        if len(parts) > len(named):
            place = parts.index(...)
            named[place:place] = [slice(None)] * (self.rank() - len(named))
        return named

    def __len__(self) -> int:
        return self.dim(0)

    def __bool__(self) -> bool:
        raise PoplarError(f"{self!r}: a tensor is neither true nor false; compare it with None")

    def __iter__(self) -> Iterator[Tensor]:
        return (self[number] for number in range(self.dim(0)))

    def index(self, indices: Sequence[int]) -> Tensor:
        """Take one index of each of the first dimensions.

        >>> from simulator.trial import Trial
        >>> trial = Trial()
        >>> x = trial.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> trial.values(x.index([1, 2]))
        6.0
        """
        return self[tuple(indices)]

    def _python_slice(self, part: PythonSlice, axis: int) -> Tensor:
        low, high, step = part.indices(self.shape[axis])
        if step == 1:
            return self._slice_dimension(low, max(low, high), axis)
        return self.taken(np.arange(low, high, step, dtype=np.int64), axis)

    def _pick(self, number: int, axis: int) -> Tensor:
        size = self.shape[axis] if axis < len(self.shape) else 0
        if not isinstance(number, WHOLE) or not -size <= number < size:
            raise PoplarError(f"{self!r}: index {number} of dimension {axis}; its size is {size}")
        first = int(number) % size
        shape = self.shape[:axis] + self.shape[axis + 1 :]
        return self.at(shape, self._cut_dimension(first, first + 1, axis))

    def taken(self, numbers: IntArray, axis: int) -> Tensor:
        """Take these indexes of a dimension, in their order.

        >>> import numpy as np
        >>> from simulator.trial import Trial
        >>> trial = Trial()
        >>> x = trial.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> trial.values(x.taken(np.array([2, 0]), 1))
        [[3.0, 1.0], [6.0, 4.0]]
        """
        size, inner = self.shape[axis], element_count(self.shape[axis + 1 :])
        outer = np.arange(element_count(self.shape[:axis]), dtype=np.int64)[:, None]
        order = (outer * size + numbers).reshape(-1)
        shape = (*self.shape[:axis], len(numbers), *self.shape[axis + 1 :])
        return self._of(shape, *blocks(*self.intervals(), order, inner))

    def reverse(self, dimension: int) -> Tensor:
        """Turn the order of a dimension round.

        >>> from simulator.trial import Trial
        >>> trial = Trial()
        >>> x = trial.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> trial.values(x.reverse(1))
        [[3.0, 2.0, 1.0], [6.0, 5.0, 4.0]]
        """
        axis = self._checked_dimension(dimension)
        return self.taken(np.arange(self.shape[axis] - 1, -1, -1, dtype=np.int64), axis)

    def subSample(self, stride: int, dimension: int) -> Tensor:
        """Take every `stride`-th index of a dimension, from the first.

        >>> from simulator.trial import Trial
        >>> trial = Trial()
        >>> x = trial.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> trial.values(x.subSample(2, 1))
        [[1.0, 3.0], [4.0, 6.0]]
        """
        axis = self._checked_dimension(dimension)
        step = self._at_least(stride, 1, "subSample: stride")
        return self.taken(np.arange(0, self.shape[axis], step, dtype=np.int64), axis)

    # Repetition
    def upsample(
        self, scale: int, dimension: int, method: UpsampleMethod = UpsampleMethod.REPEAT
    ) -> Tensor:
        """Repeat every index of a dimension `scale` times.

        >>> from simulator.trial import Trial
        >>> trial = Trial()
        >>> x = trial.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> trial.values(x.upsample(2, 0))
        [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [4.0, 5.0, 6.0]]
        """
        if method is not UpsampleMethod.REPEAT:
            raise PoplarError(f"{self!r}: upsample: method {method!r}; REPEAT is the one there is")
        axis = self._checked_dimension(dimension)
        times = self._times(scale, "upsample: scale")
        return self.taken(np.repeat(np.arange(self.shape[axis], dtype=np.int64), times), axis)

    def broadcast(self, N: int, dimension: int) -> Tensor:
        """Repeat the tensor N times along a dimension.

        >>> from simulator.trial import Trial
        >>> trial = Trial()
        >>> trial.values(trial.tensor([1.0, 2.0]).broadcast(2, 0))
        [1.0, 2.0, 1.0, 2.0]
        """
        axis = self._checked_dimension(dimension)
        times = self._times(N, "broadcast: count")
        shape = (*self.shape[:axis], self.shape[axis] * times, *self.shape[axis + 1 :])
        if isinstance(self.places, Strides):
            stepped = strides.repeated(self.places, self.shape, axis, times)
            if stepped is not None:
                return self.at(shape, stepped)
        rows = np.arange(element_count(self.shape[:axis]), dtype=np.int64)
        inner = element_count(self.shape[axis:])
        return self._of(shape, *blocks(*self.intervals(), np.repeat(rows, times), inner))

    def _times(self, number: object, action: str) -> int:
        """Return how often a tensor is repeated, which makes a view that can be held."""
        times = self._at_least(number, 0, action)
        if times * self.numElements() > MAX_REPEATED:
            raise PoplarError(
                f"{self!r}: {action} of {times:,}; a view repeats at most {MAX_REPEATED:,} elements"
            )
        return times

    def _at_least(self, number: object, least: int, action: str) -> int:
        if not isinstance(number, WHOLE) or number < least:
            raise PoplarError(f"{self!r}: {action} of {number!r}; at least {least} is needed")
        return int(number)

    # Shapes
    def reshape(self, shape: Sequence[int]) -> Tensor:
        """View the elements, in their order, in another shape of as many.

        >>> from simulator.trial import Trial
        >>> trial = Trial()
        >>> x = trial.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> trial.values(x.reshape([3, 2]))
        [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
        """
        sizes = checked_shape(shape, "reshape")
        if element_count(sizes) != self.numElements():
            raise PoplarError(
                f"{self!r}: cannot be reshaped to {list(sizes)}: "
                f"{self.numElements()} elements against {element_count(sizes)}"
            )
        return self.at(sizes, self.places)

    def reshapePartial(self, beginIndex: int, endIndex: int, newDims: Sequence[int]) -> Tensor:
        """Replace the dimensions [beginIndex, endIndex) by others.

        >>> from simulator import poplar
        >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())
        >>> x = graph.addVariable(poplar.FLOAT, [2, 3, 4], "x")
        >>> x.reshapePartial(0, 2, [6]).shape
        (6, 4)
        """
        if not 0 <= beginIndex <= endIndex <= self.rank():
            raise PoplarError(
                f"{self!r}: dimensions [{beginIndex}, {endIndex}) of {self.rank()} dimensions"
            )
        return self.reshape((*self.shape[:beginIndex], *newDims, *self.shape[endIndex:]))

    def flatten(self, dimBegin: int = 0, dimEnd: int | None = None) -> Tensor:
        """Make one dimension of all, or of [dimBegin, dimEnd).

        >>> from simulator import poplar
        >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())
        >>> x = graph.addVariable(poplar.FLOAT, [2, 3, 4], "x")
        >>> x.flatten(0, 2).shape
        (6, 4)
        """
        if dimEnd is None and dimBegin == 0:
            return self.at((self.numElements(),), self.places)
        end = self.rank() if dimEnd is None else dimEnd
        return self.reshapePartial(dimBegin, end, [element_count(self.shape[dimBegin:end])])

    def expand(self, indices: Sequence[int]) -> Tensor:
        """Insert dimensions of size 1 before the given ones.

        >>> from simulator import poplar
        >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())
        >>> x = graph.addVariable(poplar.FLOAT, [2, 3, 4], "x")
        >>> x.expand([1]).shape
        (2, 1, 3, 4)
        """
        shape = list(self.shape)
        for dimension in sorted(indices, reverse=True):
            if not 0 <= dimension <= self.rank():
                raise PoplarError(
                    f"{self!r}: expand before dimension {dimension} of {self.rank()} dimensions"
                )
            shape.insert(dimension, 1)
        return self.reshape(shape)

    def squeeze(self, indices: Sequence[int]) -> Tensor:
        """Remove dimensions of size 1.

        >>> from simulator import poplar
        >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())
        >>> x = graph.addVariable(poplar.FLOAT, [2, 3, 4], "x")
        >>> x[:1].squeeze([0]).shape
        (3, 4)
        """
        removed = {self._checked_dimension(dimension) for dimension in indices}
        for axis in sorted(removed):
            if self.shape[axis] != 1:
                raise PoplarError(
                    f"{self!r}: squeeze of dimension {axis}; its size is {self.shape[axis]}, not 1"
                )
        return self.reshape([size for axis, size in enumerate(self.shape) if axis not in removed])

    def reinterpret(self, type: Type) -> Tensor:
        """View the same bytes as elements of another type of the same size.

        >>> from simulator import poplar
        >>> from simulator.trial import Trial
        >>> trial = Trial()
        >>> trial.values(trial.tensor([1.0]).reinterpret(poplar.INT))  # an exponent of 127
        [1065353216]
        """
        if checked_type(type, f"{self!r}: reinterpret").size != self.dtype.size:
            raise PoplarError(
                f"{self!r}: reinterpret as {type} of {type.size} bytes; "
                f"{self.dtype} has {self.dtype.size}"
            )
        return Tensor(self.graph, type, self.shape, self.places)

    # Order of dimensions
    def transpose(self) -> Tensor:
        """Reverse the order of all dimensions.

        >>> from simulator.trial import Trial
        >>> trial = Trial()
        >>> x = trial.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> trial.values(x.transpose())
        [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
        """
        return self.dimShuffle(range(self.rank())[::-1])

    def dimShuffle(self, permutation: Sequence[int]) -> Tensor:
        """Put dimension permutation[i] in place i.

        >>> from simulator import poplar
        >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())
        >>> x = graph.addVariable(poplar.FLOAT, [2, 3, 4], "x")
        >>> x.dimShuffle([2, 0, 1]).shape
        (4, 2, 3)
        """
        order = tuple(permutation)
        if sorted(order) != list(range(self.rank())):
            raise PoplarError(f"{self!r}: dimShuffle({list(order)}) is no order of its dimensions")
        shape = tuple(self.shape[axis] for axis in order)
        if isinstance(self.places, Strides):
            stepped = strides.shuffled(self.places, self.shape, order)
            if stepped is not None:
                return self.at(shape, stepped)
        # Dimensions at the end that stay where they are move as blocks.
        moved = max((axis + 1 for axis, old in enumerate(order) if axis != old), default=0)
        outer, inner = self.shape[:moved], element_count(self.shape[moved:])
        if isinstance(self.places, Shifted):
            pattern = self.places.pattern.moved(outer, order[:moved], inner)
            return self.at(shape, placed(self.places.first, pattern))
        return self._of(shape, *rearranged(*self.intervals(), outer, order[:moved], inner))

    def dimShufflePartial(self, source: Sequence[int], destination: Sequence[int]) -> Tensor:
        """Move the dimensions `source` to the places `destination`; the rest keep their order.

        >>> from simulator import poplar
        >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())
        >>> x = graph.addVariable(poplar.FLOAT, [2, 3, 4], "x")
        >>> x.dimShufflePartial([2], [0]).shape
        (4, 2, 3)
        """
        for axis in (*source, *destination):
            self._checked_dimension(axis)
        if not len(set(source)) == len(source) == len(destination) == len(set(destination)):
            raise PoplarError(
                f"{self!r}: dimShufflePartial({list(source)}, {list(destination)}) needs as many "
                "places as dimensions, each once"
            )
        moved = dict(zip(destination, source, strict=True))
        unmoved = iter([axis for axis in range(self.rank()) if axis not in source])
        return self.dimShuffle(
            [moved[axis] if axis in moved else next(unmoved) for axis in range(self.rank())]
        )

    def dimRoll(self, dimIdx: int, newIdx: int = 0) -> Tensor:
        """Move one dimension to another place.

        >>> from simulator import poplar
        >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())
        >>> x = graph.addVariable(poplar.FLOAT, [2, 3, 4], "x")
        >>> x.dimRoll(2).shape
        (4, 2, 3)
        """
        return self.dimShufflePartial([dimIdx], [newIdx])


@refusing
def concat(
    tensors: Tensor | Sequence[Tensor], other: Tensor | int = 0, dimension: int = 0
) -> Tensor:
    """Lay tensors one after another: concat([a, b], dimension) or concat(a, b, dimension).

    >>> from simulator import poplar
    >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())
    >>> a, b = (graph.addVariable(poplar.FLOAT, [2, 3], name) for name in "ab")
    >>> concat(a, b).shape, concat([a, b], 1).shape
    ((4, 3), (2, 6))
    """
    if isinstance(tensors, Tensor) and isinstance(other, Tensor):
        return _concat([tensors, other], dimension)
    if isinstance(tensors, Tensor) or isinstance(other, Tensor):
        raise PoplarError(f"concat: {tensors!r} and {other!r}; needs two tensors or a list of them")
    return _concat(list(tensors), other or dimension)


@refusing
def append(first: Tensor, element: Tensor, dimension: int = 0) -> Tensor:
    """Lay one more element along a dimension; it has one dimension less.

    >>> from simulator import poplar
    >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())
    >>> rows, row = (graph.addVariable(poplar.FLOAT, shape, "t") for shape in ([2, 3], [3]))
    >>> append(rows, row).shape
    (3, 3)
    """
    return concat(first, element.expand([dimension]), dimension)


def _concat(parts: list[Tensor], axis: int) -> Tensor:
    if not parts:
        raise PoplarError("concat: needs at least one tensor")
    first = parts[0]
    before, after = first.shape[:axis], first.shape[axis + 1 :]
    for part in parts:
        if not _fits(part, first, axis):
            raise PoplarError(f"concat of {first!r} and {part!r} along dimension {axis}")
    columns = zip(*(part.intervals() for part in parts), strict=True)
    begins, lengths = map(np.concatenate, columns)
    sizes = [part.shape[axis] for part in parts]
    rows = element_count(before)
    if rows != 1:
        # Row r of part p is row_sizes[p] elements from `low` of all parts laid end to end.
        row_sizes = np.array(sizes, dtype=np.int64) * element_count(after)
        first_row = offsets_of(row_sizes * rows)[:-1]
        low = first_row + np.arange(rows, dtype=np.int64)[:, None] * row_sizes
        begins, lengths, _ = cut(begins, lengths, low.reshape(-1), (low + row_sizes).reshape(-1))
    shape = (*before, sum(sizes), *after)
    return Tensor(first.graph, first.dtype, shape, listed(*join(begins, lengths)))


def _fits(part: Tensor, first: Tensor, axis: int) -> bool:
    """Return whether a tensor can stand beside another along a dimension."""
    return (
        part.dtype == first.dtype
        and len(part.shape) == len(first.shape) > axis >= 0
        and part.shape[:axis] == first.shape[:axis]
        and part.shape[axis + 1 :] == first.shape[axis + 1 :]
        and part.graph.variables is first.graph.variables
    )


def broadcast_to(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """View a tensor in a larger shape by NumPy's broadcasting rules."""
    result = tensor.expand([0] * (len(shape) - tensor.rank()))
    fits = len(result.shape) == len(shape)
    if not fits or any(s not in (1, n) for s, n in zip(result.shape, shape, strict=True)):
        raise PoplarError(f"{tensor!r} does not broadcast to {list(shape)}")
    for axis, (size, new_size) in enumerate(zip(result.shape, shape, strict=True)):
        if size != new_size:
            result = result.broadcast(new_size, axis)
    return result
