"""The types that an optimiser keeps its tensors in."""

from __future__ import annotations

from enum import Enum

from simulator.popart.errors import popart_exception


class DataType(Enum):
    """PopART's types of elements; of what an optimiser keeps, UNDEFINED is that of the weight."""

    UINT8 = "UINT8"
    INT8 = "INT8"
    UINT16 = "UINT16"
    INT16 = "INT16"
    INT32 = "INT32"
    INT64 = "INT64"
    UINT32 = "UINT32"
    UINT64 = "UINT64"
    BOOL = "BOOL"
    FLOAT = "FLOAT"
    FLOAT16 = "FLOAT16"
    DOUBLE = "DOUBLE"
    UNDEFINED = ""


class WeightDecayMode(Enum):
    """Whether the decay takes from the weight, or is added to its gradient."""

    Decay = "Decay"
    L2Regularization = "L2Regularization"


def type_of(dtype: DataType | str) -> str:
    """Return the name of a type of floats, "" for the weight's own; raises popart_exception."""
    name = dtype.value if isinstance(dtype, DataType) else str(dtype)
    type_names = [kind.value for kind in (DataType.FLOAT, DataType.FLOAT16, DataType.UNDEFINED)]
    if name not in type_names:
        raise popart_exception(f"an optimiser keeps FLOAT or FLOAT16, not {dtype!r}")
    return name
