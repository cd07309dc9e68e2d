"""A view of elements of the arena, as their intervals; what is asked of it, not what it becomes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Self, TypeAlias

import numpy as np

from simulator.graph.arguments import refuse_in
from simulator.graph.errors import PoplarError
from simulator.graph.geometry.intervals import (
    Interval,
    ascending,
    common_length,
    from_elements,
    overlap,
    spread,
)
from simulator.graph.geometry.patterns import Pattern, Shifted, extent_of, intervals_from, placed
from simulator.graph.geometry.strides import Strides, intervals_of
from simulator.graph.tensors import regions
from simulator.graph.tensors.arena import Arena
from simulator.graph.types import IntArray, Type, element_count

Intervals: TypeAlias = tuple[IntArray, IntArray]  # begins and lengths
WHOLE = (int, np.integer)  # what counts as a whole number
MAX_KEPT = 1 << 22  # elements, in order
_LAST: list[tuple[object, IntArray]] = [(None, np.zeros(0, dtype=np.int64))]
NOWHERE = object.__new__(Arena)  # of tensors that are not valid
NOWHERE.variables = []
NO_TYPE = Type("none", 1, "?")


def _no_places() -> Intervals:
    return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)


@partial(refuse_in, making=False)
@dataclass(frozen=True, slots=True, eq=False)
class ElementView:
    """A view of `shape` elements: interval i is `lengths[i]` elements from element `begins[i]`.

    Element e of a type of s bytes is the bytes [e*s, (e+1)*s) of the arena. `places` are the
    intervals, or loops that lead to them, or a pattern of them.

    >>> from simulator.trial import Trial
    >>> x = Trial().tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> x.rank(), x.numElements()
    (2, 6)
    """

    graph: Arena = NOWHERE
    dtype: Type = NO_TYPE
    shape: tuple[int, ...] = (0,)
    places: Intervals | Strides | Shifted = field(default_factory=_no_places)

    @property
    def begins(self) -> IntArray:
        """Return the first element of each interval.

        >>> from simulator.trial import Trial
        >>> x = Trial().tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> x.slice(0, 2, 1).begins.tolist()
        [0, 3]
        """
        return self.intervals()[0]

    @property
    def lengths(self) -> IntArray:
        """Return the elements of each interval.

        >>> from simulator.trial import Trial
        >>> x = Trial().tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> x.slice(0, 2, 1).lengths.tolist()
        [2, 2]
        """
        return self.intervals()[1]

    def intervals(self) -> Intervals:
        """Return begins and lengths; where they are many, ask once for both.

        >>> from simulator.trial import Trial
        >>> x = Trial().tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> [numbers.tolist() for numbers in x.slice(0, 2, 1).intervals()]
        [[0, 3], [2, 2]]
        """
        places = self.places
        if isinstance(places, Shifted):
            return intervals_from(places)
        return intervals_of(places) if isinstance(places, Strides) else places

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.describe()}: {self.dtype}{list(self.shape)})"

    def describe(self) -> str:
        """Name the variables that the tensor is made of.

        >>> from simulator.trial import Trial
        >>> x = Trial().tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> x.describe()
        'in0'
        """
        variables = self.graph.variables
        names = [variables[number].name for number in regions.variables_of(self)] or ["<empty>"]
        return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")

    # Poplar's getters, under its names.
    def getDebugStr(self) -> str:
        """Name the variables that the tensor is made of.

        >>> from simulator.trial import Trial
        >>> x = Trial().tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> x.getDebugStr()
        'in0'
        """
        return self.describe()

    def valid(self) -> bool:
        """Return whether the tensor is of a graph; `Tensor()` is of none.

        >>> from simulator.trial import Trial
        >>> x = Trial().tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> x.valid()
        True
        """
        return self.graph is not NOWHERE

    def elementType(self) -> Type:
        """Return the type of the elements.

        >>> from simulator.trial import Trial
        >>> x = Trial().tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> x.elementType().name
        'float'
        """
        return self.dtype

    def rank(self) -> int:
        """Count the dimensions.

        >>> from simulator.trial import Trial
        >>> x = Trial().tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> x.rank()
        2
        """
        return len(self.shape)

    def dim(self, dimension: int) -> int:
        """Return the size of a dimension; raises PoplarError where there is none.

        >>> from simulator.trial import Trial
        >>> x = Trial().tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> x.dim(1)
        3
        """
        return self.shape[self._checked_dimension(dimension)]

    def numElements(self) -> int:
        """Count the elements.

        >>> from simulator.trial import Trial
        >>> x = Trial().tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> x.numElements()
        6
        """
        return element_count(self.shape)

    def isContiguous(self) -> bool:
        """Return whether all elements follow one another in one variable.

        >>> from simulator.trial import Trial
        >>> x = Trial().tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> x.isContiguous(), x.transpose().isContiguous()
        (True, False)
        """
        places = self.places
        if isinstance(places, Shifted) or (isinstance(places, Strides) and places.reach()[0] > 1):
            return False
        return len(self.begins) <= 1 and len(self.getContiguousRegions()) <= 1

    def getContiguousRegions(self) -> list[Interval]:
        """List the parts [begin, end) of the flattened tensor that lie together in a variable.

        >>> from simulator.trial import Trial
        >>> x = Trial().tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> x.slice(0, 2, 1).getContiguousRegions()
        [(0, 2), (2, 4)]
        """
        return regions.contiguous_regions(self)

    def getVarRegions(self) -> list[regions.VariableInterval]:
        """List the parts [begin, end) of flattened variables that follow one another here.

        >>> from simulator.trial import Trial
        >>> x = Trial().tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> [part.interval for part in x.slice(0, 2, 1).getVarRegions()]
        [(0, 2), (3, 5)]
        """
        return regions.variable_regions(self)

    def containsAliases(self) -> bool:
        """Return whether an element stands in the tensor twice.

        >>> from simulator.trial import Trial
        >>> x = Trial().tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> x.containsAliases(), x.broadcast(2, 0).containsAliases()
        (False, True)
        """
        places = self.places
        if isinstance(places, Strides) and (repeats := places.repeats()) is not None:
            return repeats
        if isinstance(places, Shifted):
            return places.pattern.aliases()
        return overlap(*self.intervals())

    def containsConstant(self) -> bool:
        """Return whether an element is a constant.

        >>> from simulator.trial import Trial
        >>> from simulator.graph.types import FLOAT
        >>> Trial().graph.addConstant(FLOAT, [2], 1.0).containsConstant()
        True
        """
        variables = self.graph.variables
        return any(variables[number].constant for number in regions.variables_of(self))

    def isParallelWriteable(self) -> bool:
        """Return whether all elements can be written at once.

        >>> from simulator.trial import Trial
        >>> x = Trial().tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> x.isParallelWriteable(), x.broadcast(2, 0).isParallelWriteable()
        (True, False)
        """
        return not self.containsAliases() and not self.containsConstant()

    def intersectsWith(self, other: ElementView) -> bool:
        """Return whether the tensors have an element in common.

        >>> from simulator.trial import Trial
        >>> x = Trial().tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> x[0].intersectsWith(x[1]), x[0].intersectsWith(x)
        (False, True)
        """
        return regions.have_common_bytes(self, other)

    # Elements of the arena
    def extent(self) -> tuple[int, int]:
        """Return the lowest of the elements and the end of the highest; there is one at least.

        >>> from simulator.trial import Trial
        >>> x = Trial().tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> x.slice(0, 2, 1).extent()
        (0, 5)
        """
        if isinstance(self.places, Strides | Shifted):
            return self.places.extent()
        return extent_of(*self.places)

    def elements(self) -> IntArray:
        """List the arena elements, in the tensor's shape; they are not changed.

        >>> from simulator.trial import Trial
        >>> x = Trial().tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> x.transpose().elements().tolist()
        [[0, 3], [1, 4], [2, 5]]
        """
        begins, lengths = self.intervals()
        alone = common_length(lengths) == 1
        return (begins if alone else spread(begins, lengths)).reshape(self.shape)

    def upward(self) -> IntArray:
        """Return the order in which the elements go up in the arena, those alike as they come.

        >>> from simulator.trial import Trial
        >>> x = Trial().tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> x.transpose().upward().tolist()
        [0, 2, 4, 1, 3, 5]
        """
        places, order = _LAST[0]
        if places is not self._order_of():
            order = ascending(self.elements().reshape(-1))
            self.keep_upward(order)
        return order

    def keep_upward(self, order: IntArray) -> None:
        """Keep the order that `upward` gives, until another is: the next step asks for it again.

        >>> from simulator.trial import Trial
        >>> x = Trial().tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> order = x.upward()
        >>> x.keep_upward(order)
        >>> x.upward() is order
        True
        """
        if len(order) <= MAX_KEPT:
            _LAST[0] = (self._order_of(), order)

    def _order_of(self) -> object:
        """Return what tells the order of the elements."""
        return self.places.pattern if isinstance(self.places, Shifted) else self.places

    def view(self, elements: IntArray) -> Self:
        """Make the view of these arena elements, in their shape.

        >>> from simulator.trial import Trial
        >>> x = Trial().tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> x.view(x.elements()[:, 2:]).shape
        (2, 1)
        """
        return self._of(elements.shape, *from_elements(elements.reshape(-1)))

    def _of(self, shape: tuple[int, ...], begins: IntArray, lengths: IntArray) -> Self:
        return self.at(shape, placed(0, Pattern(begins, lengths)))

    def at(self, shape: tuple[int, ...], places: Intervals | Strides | Shifted) -> Self:
        """View other places of the same type, in a shape of as many elements.

        >>> from simulator.trial import Trial
        >>> x = Trial().tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> x.at((6,), x.places).shape
        (6,)
        """
        return type(self)(self.graph, self.dtype, shape, places)

    def _checked_dimension(self, dimension: int) -> int:
        if not isinstance(dimension, WHOLE) or not 0 <= dimension < len(self.shape):
            raise PoplarError(
                f"{self!r}: dimension {dimension} of a tensor of {self.rank()} dimensions"
            )
        return int(dimension)
