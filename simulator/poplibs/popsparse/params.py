"""What is multiplied: sparsity, and the sizes of products and layers (popsparse/*Params.hpp)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import ceil
from typing import Self

from simulator.codelets.products.sparse import BLOCKS
from simulator.graph.errors import poplibs_error


class SparsityType(Enum):
    """Whether single elements or blocks are not zero."""

    Element = "Element"
    Block = "Block"


class SparsityStructure(Enum):
    """Where non-zeros may be: anywhere."""

    Unstructured = "Unstructured"


@dataclass(frozen=True, slots=True)
class SparsityParams:
    """The sparsity of a matrix; its type follows from the size of the blocks."""

    type: SparsityType = SparsityType.Element
    structure: SparsityStructure = SparsityStructure.Unstructured
    blockDimensions: Sequence[int] = (1, 1)

    def __post_init__(self) -> None:
        height, width = tuple(self.blockDimensions)
        if height != width or height not in BLOCKS:
            sizes = ", ".join(f"{size} x {size}" for size in BLOCKS)
            raise poplibs_error(
                f"SparsityParams: blocks of {height} x {width}; {sizes} are possible"
            )
        kind = SparsityType.Element if height == 1 else SparsityType.Block
        object.__setattr__(self, "type", kind)
        object.__setattr__(self, "blockDimensions", (height, width))

    @property
    def block(self) -> int:
        """Return the rows, and the columns, of a block."""
        return int(self.blockDimensions[0])


@dataclass(frozen=True, slots=True)
class _Sizes:
    """A sparse matrix of so many non-zeros, in groups, and a dense one."""

    sparsityParams: SparsityParams
    nzRatio: float
    groups: int
    rows: int
    inner: int
    columns: int

    def _check(self, name: str) -> None:
        block = self.sparsityParams.block
        if self.groups != 1:
            raise poplibs_error(f"{name}: {self.groups} groups; sparse products have 1")
        if min(self.rows, self.inner, self.columns) < 1 or not 0 <= self.nzRatio <= 1:
            raise poplibs_error(
                f"{name}: {self.rows} x {self.inner} by {self.inner} x {self.columns} with "
                f"{self.nzRatio} not zero; sizes from 1 and a share from 0 to 1 are needed"
            )
        if self.rows % block or self.inner % block:
            raise poplibs_error(
                f"{name}: {self.rows} x {self.inner} is no multiple of blocks of {block} x {block}"
            )

    def getSparsityParams(self) -> SparsityParams:
        return self.sparsityParams

    def getNzRatio(self) -> float:
        return self.nzRatio

    def getNumGroups(self) -> int:
        return self.groups

    def getNumNonZeroValues(self) -> int:
        area = self.sparsityParams.block**2
        return ceil(self.rows * self.inner * self.nzRatio / area) * area


@dataclass(frozen=True, slots=True)
class MatMulParams(_Sizes):
    """A product of a sparse [m, k] and a dense [k, n]."""

    @classmethod
    def createWithNzRatio(
        cls, sparsityParams: SparsityParams, nzRatio: float, groups: int, m: int, k: int, n: int
    ) -> Self:
        params = cls(sparsityParams, float(nzRatio), groups, m, k, n)
        params._check("MatMulParams")
        return params

    @classmethod
    def createWithNumNonZeroValues(
        cls,
        sparsityParams: SparsityParams,
        numNonZeroElems: int,
        groups: int,
        m: int,
        k: int,
        n: int,
    ) -> Self:
        ratio = numNonZeroElems / max(groups * m * k, 1)
        return cls.createWithNzRatio(sparsityParams, ratio, groups, m, k, n)

    def getM(self) -> int:
        return self.rows

    def getK(self) -> int:
        return self.inner

    def getN(self) -> int:
        return self.columns


@dataclass(frozen=True, slots=True)
class FullyConnectedParams(_Sizes):
    """A layer of sparse weights [outputs, inputs]; `columns` are the samples of a batch."""

    @classmethod
    def createWithNzRatio(
        cls,
        sparsityParams: SparsityParams,
        nzRatio: float,
        batchSize: int,
        numGroups: int,
        inputChannels: int,
        outputChannels: int,
    ) -> Self:
        sizes = (numGroups, outputChannels // numGroups, inputChannels // numGroups, batchSize)
        params = cls(sparsityParams, float(nzRatio), *sizes)
        params._check("FullyConnectedParams")
        return params

    @classmethod
    def createWithNumNonZeroValues(
        cls,
        sparsityParams: SparsityParams,
        numNonZeroElems: int,
        batchSize: int,
        numGroups: int,
        inputChannels: int,
        outputChannels: int,
    ) -> Self:
        ratio = numNonZeroElems / max(inputChannels * outputChannels // max(numGroups, 1), 1)
        sizes = (batchSize, numGroups, inputChannels, outputChannels)
        return cls.createWithNzRatio(sparsityParams, ratio, *sizes)

    def getBatchSize(self) -> int:
        return self.columns

    def getInputChannels(self) -> int:
        return self.groups * self.inner

    def getOutputChannels(self) -> int:
        return self.groups * self.rows

    def getInputChannelsPerGroup(self) -> int:
        return self.inner

    def getOutputChannelsPerGroup(self) -> int:
        return self.rows


Params = MatMulParams | FullyConnectedParams
