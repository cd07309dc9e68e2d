"""Profile values onto streams, in the encodings of the written documents."""

from __future__ import annotations

import io
from typing import IO, Any

from pva.formats import registry
from simulator.graph.arguments import refusing
from simulator.graph.errors import PoplarError


@refusing
def serializeToJSON(stream: IO[Any], value: object, pretty: bool = False) -> None:
    """Write a profile, or any part of one, as JSON to a text or binary stream.

    >>> import sys
    >>> from simulator import poplar
    >>> poplar.serializeToJSON(sys.stdout, {"numTiles": 4})
    {"numTiles":4}
    """
    data = _encoded(value, "json", pretty)
    if isinstance(stream, io.TextIOBase):
        stream.write(data.decode("utf-8"))
    else:
        stream.write(data)


@refusing
def serializeToCBOR(stream: IO[Any], value: object) -> None:
    """Write a profile, or any part of one, as CBOR.

    The stream is binary, or a text stream over a binary one, such as sys.stdout.

    >>> import io
    >>> from simulator import poplar
    >>> stream = io.BytesIO()
    >>> poplar.serializeToCBOR(stream, [1, 2])
    >>> stream.getvalue().hex()  # a list of two: 1, 2
    '820102'
    """
    data = _encoded(value, "cbor")
    below = stream
    if isinstance(stream, io.TextIOBase):
        stream.flush()
        below = getattr(stream, "buffer", None)
        if below is None:
            raise PoplarError("serializeToCBOR: a text stream holds no bytes; open it as binary")
    below.write(data)


def _encoded(value: object, format: str, pretty: bool = False) -> bytes:
    try:
        return registry.encoded(value, format, pretty=pretty)
    except (TypeError, ValueError) as error:
        raise PoplarError(f"serializeTo{format.upper()}: {error}") from None
