"""The words of a report: tags, categories and other names that stand in it as codes."""

from __future__ import annotations

TARGET_TYPES = ("CPU", "IPU", "IPU_MODEL")
REGIONS = ("nonInterleaved", "interleaved", "overflowed")
OVERLAPS = ("nonOverlapped", "overlapped")
CATEGORIES = (
    "constant", "controlCode", "controlId", "controlTable", "copyDescriptor", "globalExchangeCode",
    "globalExchangePacketHeader", "globalMessage", "hostExchangeCode", "hostExchangePacketHeader",
    "hostMessage", "instrumentationResults", "internalExchangeCode", "message", "multiple", "outputEdge",
    "rearrangement", "sharedCodeStorage", "sharedDataStorage", "stack", "variable",
    "vectorListDescriptor", "vertexCode", "vertexFieldData", "vertexInstanceState",
)  # fmt: skip
PROGRAM_TYPES = (
    "OnTileExecute", "DoExchange", "GlobalExchange", "StreamCopy", "CopySharedStructure", "Sync",
    "Sequence", "Repeat", "RepeatWhileTrue", "RepeatWhileFalse", "RepeatWhile", "If", "IfElse",
    "SetLocalConsensusFromVar", "Switch", "WriteUndef", "Call", "StreamCopyBegin", "StreamCopyEnd",
    "SyncAns", "Sans", "OnEveryTileSwitch",
)  # fmt: skip
WRITTEN_TYPES = (
    "Sequence", "Execute", "Copy", "CrossReplicaCopy", "Repeat", "RepeatWhile", "RepeatWhileTrue",
    "RepeatWhileFalse", "If", "Switch", "Call", "Block", "PrintTensor", "ErrorProgram",
    "WriteUndef", "Sync", "Abort", "AbortOnCondition", "AssumeEqualAcrossReplicas",
)  # fmt: skip
STEP_TYPES = (
    "OnTileExecute", "StreamCopy", "CopySharedStructure", "Sync", "DoExchange", "GlobalExchange",
    "StreamCopyBegin", "StreamCopyEnd", "SyncAns", "Sans",
)  # fmt: skip
SYNC_TYPES = ("None", "Internal", "External")
TILE_SETS = ("All", "Compute", "IO")
PROFILER_MODES = (
    "NONE", "CPU", "IPU_MODEL", "COMPUTE_SETS", "SINGLE_TILE_COMPUTE_SETS", "VERTICES",
    "EXTERNAL_EXCHANGES", "HOST_EXCHANGES",
)  # fmt: skip
BLOCK_KINDS = ("common", "overflow", "blockFlush", "streamCopy")
EXCHANGE_INSTRUCTIONS = (
    "delay", "exchange", "other", "receiveAddress", "receiveFormat", "receiveMux", "send",
    "sendWithPutAddress", "sendWithPutFormat", "sendWithPutMux", "total",
)  # fmt: skip
VERTEX_MEMORY_PARTS = (
    ("code", "codeBytes", "code; shared between compute sets, so that rows cannot be added"),
    ("copy_pointers", "copyPtrBytes", "pointers of copy vertices"),
    ("descriptors", "descriptorBytes", "descriptors of vector lists and copies"),
    ("edge_pointers", "edgePtrBytes", "pointers to edges"),
    ("padding", "paddingBytes", "padding between vertices"),
    ("vertex_data", "vertexDataBytes", "members of the vertices that are not pointers"),
    ("total", "totalBytes", "all parts; contains code, so that rows cannot be added"),
)
