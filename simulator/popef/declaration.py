"""What a PopEF file holds, declared once: frame, blobs, types, and the fields of each structure.

Readers, writers, the dump and docs/popef-format.md come from it. Model and names are those of the
Poplar Exchange Format; the bytes are ours, since Graphcore's are not public.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from struct import Struct
from typing import NamedTuple

MAGIC = b"tsPopEF\n"  # at the begin of each blob; no other file begins like this
FORMAT_VERSION = 1
ALIGNMENT = 8  # bytes, of each blob and of its payload
COMPRESSED = 1  # flag: the payload is a zlib stream
FRAME = Struct("<8sHHIIIQQII")


class FrameField(NamedTuple):
    """A number of the frame: its type and what it means."""

    name: str
    type: str
    meaning: str


FRAME_FIELDS = (
    FrameField("magic", "8 bytes", r"`tsPopEF\n`"),
    FrameField("version", "u16", f"format version, {FORMAT_VERSION}; a newer one is refused"),
    FrameField("type", "u16", "number of the blob's type"),
    FrameField("flags", "u32", f"bit 0 ({COMPRESSED}): the payload is compressed by zlib"),
    FrameField("structureBytes", "u32", "bytes of the structure: JSON, blanks behind it"),
    FrameField("headCrc32", "u32", "CRC-32 of the frame, with 0 here, and of the structure"),
    FrameField("size", "u64", "bytes of the whole blob, frame and padding included"),
    FrameField("payloadBytes", "u64", "bytes of the payload as it stands in the file"),
    FrameField("payloadCrc32", "u32", "CRC-32 of these"),
    FrameField("reserved", "u32", "0"),
)  # fmt: skip


class BlobType(IntEnum):
    """What a blob is."""

    POPLAR_EXECUTABLE = 1
    METADATA = 2
    DATA_TENSOR = 3
    DATA_FEED = 4
    OPAQUE = 5


# Type -> its name in the dump, and what the blob holds.
BLOBS = {
    BlobType.POPLAR_EXECUTABLE: (
        "poplarExecutable",
        "a compiled program, as `Executable.serialize` writes it",
    ),
    BlobType.METADATA: ("metadata", "how to run it; no payload"),
    BlobType.DATA_TENSOR: ("dataTensor", "the elements of one tensor, little-endian, row by row"),
    BlobType.DATA_FEED: (
        "dataFeed",
        "those of several tensors of one name, one after another: data for an input",
    ),
    BlobType.OPAQUE: ("opaque", "bytes of a framework, which nobody else reads"),
}


class DataType(Enum):
    """The type of elements: its name in the dump."""

    BOOL = "bool"
    F8 = "f8"
    F16 = "f16"
    F32 = "f32"
    F64 = "f64"
    S8 = "s8"
    U8 = "u8"
    S16 = "s16"
    U16 = "u16"
    S32 = "s32"
    U32 = "u32"
    S64 = "s64"
    U64 = "u64"
    F8143 = "f8143"
    F8152 = "f8152"


# NumPy's types; NumPy has no floats of 8 bits, whose bytes stand for them.
ARRAYS = {
    DataType.BOOL: "?", DataType.F8: "u1", DataType.F16: "<f2", DataType.F32: "<f4",
    DataType.F64: "<f8", DataType.S8: "i1", DataType.U8: "u1", DataType.S16: "<i2",
    DataType.U16: "<u2", DataType.S32: "<i4", DataType.U32: "<u4", DataType.S64: "<i8",
    DataType.U64: "<u8", DataType.F8143: "u1", DataType.F8152: "u1",
}  # fmt: skip


class TensorType(Enum):
    """Which way an anchor goes."""

    UNKNOWN = "unknown"
    INPUT = "input"
    OUTPUT = "output"


class Field(NamedTuple):
    """A field of a structure: its kind (of KINDS), what it is without being set, its meaning.

    `own` marks what PopEF does not have.
    """

    name: str
    kind: str
    default: object
    meaning: str
    own: bool = False


KINDS = {
    "text": "text",
    "number": "whole number, in quotes",
    "flag": "true or false",
    "numbers": "list of whole numbers, in quotes",
    "named": "object from numbers, in quotes, to texts",
    "dataType": "name of an element type",
    "tensorType": "`unknown`, `input` or `output`",
    "TensorInfo": "object, see TensorInfo",
    "ProgramFlow": "object, see ProgramFlow",
    "Anchors": "list of objects, see Anchor",
    "Options": "list of objects, see Option",
}

OPTION = (
    Field("name", "text", "", "its name"),
    Field("value", "text", "", "its value"),
)
TENSOR_INFO = (
    Field("shape", "numbers", (), "sizes of the dimensions; none of a scalar"),
    Field("dataType", "dataType", DataType.F32, "type of the elements"),
)
PROGRAM_FLOW = (
    Field("load", "numbers", (), "programs to run once before the first main one"),
    Field("main", "numbers", (), "programs to run for each step"),
    Field("save", "numbers", (), "programs to run at the end"),
)
ANCHOR = (
    Field("name", "text", "", "name of the tensor"),
    Field("handle", "text", "", "handle of its stream; empty where it has none"),
    Field("tensorInfo", "TensorInfo", None, "shape and type of a transfer, of all replicas"),
    Field("type", "tensorType", TensorType.UNKNOWN, "to the device, from it, or neither"),
    Field("isPerReplica", "flag", False, "the first dimension counts replicas"),
    Field("programs", "numbers", (), "programs that transfer it"),
)
METADATA = (
    Field("replicationFactor", "number", 1, "replicas here"),
    Field("numIpus", "number", 1, "IPUs of the device"),
    Field("seedHandle", "text", "", "handle of the seed's stream; empty where there is none"),
    Field("anchors", "Anchors", (), "tensors that go to the device or come from it"),
    Field("executable", "text", "", "name of the executable"),
    Field("numProcesses", "number", 1, "processes that share the replicas of all"),
    Field("ipuVersion", "number", 2, "digits behind `ipu` in the architecture"),
    Field("isPOD", "flag", False, "the system is a Pod"),
    Field("isInference", "flag", True, "no weight changes"),
    Field("engineOptions", "Options", (), "options of the engine"),
    Field("deviceOptions", "Options", (), "options of the target"),
    Field("programFlow", "ProgramFlow", None, "which programs load, run and save"),
    Field("deviceIterations", "number", 1, "transfers of each data stream in a step"),
    Field("programsMap", "named", (), "what programs are called, by number"),
)
EXECUTABLE_INFO = (
    Field("name", "text", "", "unique among the executables that are read together"),
    Field("uncompressedSize", "number", 0, "bytes of the program"),
    Field("version", "text", "", "versions that wrote it: of the simulator, of its file", own=True),
    Field("hash", "text", "", "SHA-256 of the program", own=True),
    Field("programs", "numbers", (), "number in the metadata of each of its programs", own=True),
    Field("streams", "Options", (), "handle in the metadata -> its stream in the program, where "
          "they differ", own=True),
    Field("machine", "text", "", "machine that it was compiled for", own=True),
    Field("numIpus", "number", 1, "IPUs of it, all replicas", own=True),
    Field("tilesPerIpu", "number", 1, "tiles of an IPU", own=True),
    Field("tilesUsed", "number", 0, "tiles of an IPU that hold anything", own=True),
    Field("bytesPerTile", "number", 0, "memory of a tile", own=True),
    Field("bytesNeeded", "number", 0, "what the fullest tile needs", own=True),
)  # fmt: skip
TENSOR_DATA_INFO = (
    Field("name", "text", "", "name of the tensor"),
    Field("tensorInfo", "TensorInfo", None, "its shape and type"),
)
FEED_DATA_INFO = (
    *TENSOR_DATA_INFO,
    Field("numTensors", "number", 1, "how often the tensor follows"),
)
OPAQUE_INFO = (
    Field("name", "text", "", "framework that wrote it"),
    Field("executable", "text", "", "name of the executable"),
)
