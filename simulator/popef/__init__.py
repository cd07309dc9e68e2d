"""PopEF: a compiled program in a file, with how to run it and the data that it needs.

reader = popef.Reader()
reader.parseFile("executable.popef")
model = popef.ModelBuilder(reader).createModel()

Model and names are those of the Poplar Exchange Format, the bytes are tilescope's own: those of
Graphcore's files are not public. docs/popef-format.md describes them.
"""

from __future__ import annotations

from simulator.popef.declaration import BlobType, DataType, TensorType
from simulator.popef.model import Model, ModelBuilder, load_model
from simulator.popef.reader import (
    ExecutableReader,
    FeedReader,
    OpaqueReader,
    Reader,
    TensorReader,
)
from simulator.popef.structures import (
    Anchor,
    ExecutableInfo,
    FeedDataInfo,
    Metadata,
    OpaqueInfo,
    Option,
    ProgramFlow,
    TensorDataInfo,
    TensorInfo,
    data_type,
)
from simulator.popef.writer import BlobWriter, FileWriter, Mode, Writer

__all__ = [
    "Anchor",
    "BlobType",
    "BlobWriter",
    "DataType",
    "ExecutableInfo",
    "ExecutableReader",
    "FeedDataInfo",
    "FeedReader",
    "FileWriter",
    "Metadata",
    "Mode",
    "Model",
    "ModelBuilder",
    "OpaqueInfo",
    "OpaqueReader",
    "Option",
    "ProgramFlow",
    "Reader",
    "TensorDataInfo",
    "TensorInfo",
    "TensorReader",
    "TensorType",
    "Writer",
    "data_type",
    "load_model",
]
