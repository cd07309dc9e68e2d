"""The messages of Triton as types: the fields of `messages` that this server reads.

The classes themselves are built at run time (`protocol`), so nothing checks a field's name but
these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor


class Message(Protocol):
    """What every message has."""

    def ListFields(self) -> Sequence[tuple[FieldDescriptor, object]]:
        """Return the fields that are set, with their values."""

    def HasField(self, name: str, /) -> bool:
        """Return whether a field with presence is set."""

    def WhichOneof(self, group: str, /) -> str | None:
        """Return which field of a group is set."""

    def CopyFrom(self, other: Self, /) -> None:
        """Take over the fields of another message of the class."""

    def SerializeToString(self) -> bytes:
        """Return the message as bytes."""


# Configuration of a model
class Reshape(Message, Protocol):
    """ModelTensorReshape."""

    shape: Sequence[int]


class DeclaredTensor(Message, Protocol):
    """ModelInput or ModelOutput: what both have."""

    name: str
    data_type: int
    dims: Sequence[int]
    reshape: Reshape


class DeclaredOutput(DeclaredTensor, Protocol):
    """ModelOutput."""

    label_filename: str


class InstanceGroup(Message, Protocol):
    """ModelInstanceGroup."""

    DESCRIPTOR: Descriptor
    kind: int
    count: int
    gpus: Sequence[int]
    passive: bool


class QueuePolicy(Message, Protocol):
    """ModelQueuePolicy."""

    timeout_action: int
    default_timeout_microseconds: int
    allow_timeout_override: bool
    max_queue_size: int


class DynamicBatching(Message, Protocol):
    """ModelDynamicBatching."""

    preferred_batch_size: Sequence[int]
    max_queue_delay_microseconds: int
    preserve_ordering: bool
    priority_levels: int
    default_priority_level: int
    default_queue_policy: QueuePolicy
    priority_queue_policy: Mapping[int, QueuePolicy]


class Specific(Message, Protocol):
    """ModelVersionPolicy.Specific."""

    versions: Sequence[int]


class Latest(Message, Protocol):
    """ModelVersionPolicy.Latest."""

    num_versions: int


class VersionPolicy(Message, Protocol):
    """ModelVersionPolicy."""

    latest: Latest
    specific: Specific


class TransactionPolicy(Message, Protocol):
    """ModelTransactionPolicy."""

    decoupled: bool


class Parameter(Message, Protocol):
    """ModelParameter."""

    string_value: str


class WarmupInput(Message, Protocol):
    """ModelWarmup.Input."""

    data_type: int
    dims: Sequence[int]
    input_data_file: str


class WarmupSample(Message, Protocol):
    """ModelWarmup."""

    name: str
    batch_size: int
    inputs: Mapping[str, WarmupInput]
    count: int


class ModelConfig(Message, Protocol):
    """ModelConfig."""

    name: str
    backend: str
    version_policy: VersionPolicy
    max_batch_size: int
    input: Sequence[DeclaredTensor]
    output: Sequence[DeclaredOutput]
    dynamic_batching: DynamicBatching
    instance_group: Sequence[InstanceGroup]
    parameters: Mapping[str, Parameter]
    model_warmup: Sequence[WarmupSample]
    model_transaction_policy: TransactionPolicy


# Requests of gRPC
class NamedRequest(Message, Protocol):
    """A request that names a model and perhaps a version of it."""

    name: str
    version: str


class IndexRequest(Message, Protocol):
    """RepositoryIndexRequest."""

    ready: bool


class RepositoryRequest(Message, Protocol):
    """RepositoryModelLoadRequest or RepositoryModelUnloadRequest."""

    model_name: str
    parameters: Mapping[str, Message]


class SettingValue(Message, Protocol):
    """TraceSettingRequest.SettingValue."""

    value: Sequence[str]


class TraceRequest(Message, Protocol):
    """TraceSettingRequest."""

    settings: Mapping[str, SettingValue]
    model_name: str


class LogRequest(Message, Protocol):
    """LogSettingsRequest."""

    settings: Mapping[str, Message]


class InputTensor(Message, Protocol):
    """ModelInferRequest.InferInputTensor."""

    name: str
    datatype: str
    shape: Sequence[int]
    parameters: Mapping[str, Message]
    contents: Message


class OutputTensor(Message, Protocol):
    """ModelInferRequest.InferRequestedOutputTensor."""

    name: str
    parameters: Mapping[str, Message]


class ModelInferRequest(Message, Protocol):
    """ModelInferRequest."""

    model_name: str
    model_version: str
    id: str
    parameters: Mapping[str, Message]
    inputs: Sequence[InputTensor]
    outputs: Sequence[OutputTensor]
    raw_input_contents: Sequence[bytes]


class CallContext(Protocol):
    """What gRPC hands to a method beside its request."""

    def abort(self, code: object, details: str) -> object:
        """End the call with a status; raises."""

    def cancel(self) -> object:
        """End the call from this side."""

    def add_callback(self, callback: Callable[[], object]) -> object:
        """Call this when the call ends."""
