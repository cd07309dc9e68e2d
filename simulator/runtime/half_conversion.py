"""Halves as the device has them, on the host: 16 bits of IEEE 754, from and to floats and doubles.

Sources and destinations are any objects that show their memory; bytes may stand for all types.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any

import numpy as np

from simulator.graph.arguments import refusing
from simulator.graph.errors import HostAccessError
from simulator.graph.machine.target import Target
from simulator.graph.types import DOUBLE, FLOAT, HALF, Type
from simulator.runtime.host_data import host_array

_TEXT = """Convert the first {source} values of an array to {destination}.

    >>> import numpy as np
    >>> from simulator import poplar
    >>> target = poplar.IPUModel("tiny").createDevice().getTarget()
    >>> values, room = np.array([0.5, 0.1], np.{types[0]}), np.zeros(2, np.{types[1]})
    >>> poplar.{name}(target, values, room, 2)
    >>> room.tolist()  # 0.1 is no half
    [0.5, 0.0999755859375]
    """


def _converter(name: str, source: Type, destination: Type) -> Callable[..., None]:
    def convert(target: Target, src: object, dst: object, numElements: int) -> None:
        del target
        count = index(numElements)
        values = host_array(_memory(src, source), source, f"{name}: src")
        room = host_array(_memory(dst, destination), destination, f"{name}: dst", writable=True)
        for argument, array in (("src", values), ("dst", room)):
            if not 0 <= count <= array.size:
                raise HostAccessError(f"{name}: {count} elements; {argument} has {array.size}")
        with np.errstate(over="ignore"):  # what is too large for a half is infinite
            room[:count] = values[:count]

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = _TEXT.format(
        name=name, source=source, destination=destination, types=[source.numpy, destination.numpy]
    )
    return refusing(convert)


def _memory(data: Any, dtype: Type) -> Any:
    """Show words of 16 bits as bytes, so that they may stand for halves, as in a C++ program."""
    words = isinstance(data, np.ndarray) and data.dtype == np.uint16 and dtype == HALF
    return data.reshape(-1).view(np.uint8) if words else data


copyFloatToDeviceHalf = _converter("copyFloatToDeviceHalf", FLOAT, HALF)
copyDoubleToDeviceHalf = _converter("copyDoubleToDeviceHalf", DOUBLE, HALF)
copyDeviceHalfToFloat = _converter("copyDeviceHalfToFloat", HALF, FLOAT)
copyDeviceHalfToDouble = _converter("copyDeviceHalfToDouble", HALF, DOUBLE)
