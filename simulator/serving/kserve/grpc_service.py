"""KServe v2 over gRPC: the methods of `inference.GRPCInferenceService`, with messages of our pool.

Needs the package grpcio: pip install 'tilescope[serving]'.
"""

from __future__ import annotations

import logging
import queue
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from pva.errors import MissingPackageError, PvaError
from pva.version import VERSION
from simulator.graph.types import Array
from simulator.serving.kserve import classification
from simulator.serving.kserve.descriptions import model_metadata, statistics_of
from simulator.serving.kserve.http import FAILED
from simulator.serving.served import RequestError
from simulator.serving.server import (
    EXTENSIONS,
    MAX_ELEMENTS,
    NAME,
    InferRequest,
    InferResponse,
    Server,
)
from simulator.serving.settings import SettingError, Settings
from simulator.serving.triton_messages.message_types import (
    CallContext,
    IndexRequest,
    InputTensor,
    LogRequest,
    Message,
    ModelInferRequest,
    NamedRequest,
    RepositoryRequest,
    TraceRequest,
)
from simulator.serving.triton_messages.protocol import message, message_class
from simulator.serving.triton_messages.tensors import (
    DATATYPES,
    TensorError,
    elements_of,
    from_bytes,
    objects,
    to_bytes,
)

if TYPE_CHECKING:
    import grpc

SERVICE = "inference.GRPCInferenceService"
Act = Callable[..., object]
OutputOptions = Mapping[str, Mapping[str, object]]  # parameters by the name of an output
STREAMS = 256  # answers of a stream that wait to be sent
# Names of gRPC's status codes by HTTP's.
CODES = {400: "INVALID_ARGUMENT", 404: "NOT_FOUND", 413: "RESOURCE_EXHAUSTED", 499: "CANCELLED",
         500: "INTERNAL", 501: "UNIMPLEMENTED", 503: "UNAVAILABLE",
         504: "DEADLINE_EXCEEDED"}  # fmt: skip


def serve(
    server: Server, settings: Settings, address: str, most_bytes: int, threads: int
) -> tuple[grpc.Server, int]:
    """Listen with gRPC; return its server and the port. Raises PvaError."""
    try:
        import grpc
    except ModuleNotFoundError:
        remedy = "pip install 'tilescope[serving]', or --grpc off"
        raise MissingPackageError("gRPC", "needs the package grpcio", remedy) from None
    options = [
        ("grpc.max_receive_message_length", most_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.so_reuseport", 0),
    ]
    pool = ThreadPoolExecutor(threads, thread_name_prefix="gRPC")
    listening = grpc.server(pool, options=options)
    listening.add_generic_rpc_handlers((_handlers(grpc, Methods(server, settings)),))
    try:
        port = listening.add_insecure_port(address)
    except RuntimeError:
        port = 0
    if not port:
        raise PvaError(address, "cannot be listened on", "a free port for --grpc")
    listening.start()
    return listening, port


def _handlers(grpc: ModuleType, methods: Methods) -> object:
    handlers: dict[str, object] = {}
    for name, (request, response, act) in methods.table().items():
        kind = grpc.unary_unary_rpc_method_handler
        if name == "ModelStreamInfer":
            kind = grpc.stream_stream_rpc_method_handler
        handlers[name] = kind(
            _guarded(grpc, act) if name != "ModelStreamInfer" else act,
            request_deserializer=message_class(request).FromString,
            response_serializer=message_class(response).SerializeToString,
        )
    return grpc.method_handlers_generic_handler(SERVICE, handlers)


def _guarded(
    grpc: ModuleType, act: Callable[[object, CallContext], object]
) -> Callable[[object, CallContext], object]:
    """Answer errors by a status and a line."""

    def answer(request: object, context: CallContext) -> object:
        try:
            return act(request, context)
        except RequestError as error:
            code, text = CODES.get(error.status, "UNKNOWN"), str(error)
        except (TensorError, SettingError, PvaError) as error:
            code, text = "INVALID_ARGUMENT", " ".join(str(error).split())
        except MemoryError:
            code, text = "RESOURCE_EXHAUSTED", "the memory of this machine is not enough"
        except Exception as error:  # of ours: nobody expected it
            logging.getLogger("tilescope").error("the server failed", exc_info=error)
            code, text = "INTERNAL", FAILED
        return context.abort(getattr(grpc.StatusCode, code), text)  # raises

    return answer


class Methods:
    """What each method of the service does."""

    def __init__(self, server: Server, settings: Settings) -> None:
        self.server, self.settings = server, settings

    def table(self) -> Mapping[str, tuple[str, str, Act]]:
        """Return request, response and function of each method."""
        acts: dict[str, Act] = {
            "ServerLive": self._live, "ServerReady": self._ready, "ModelReady": self._model_ready,
            "ServerMetadata": self._metadata, "ModelMetadata": self._model_metadata,
            "ModelInfer": self._infer, "ModelConfig": self._config,
            "ModelStatistics": self._statistics, "RepositoryIndex": self._index,
            "RepositoryModelLoad": self._load, "RepositoryModelUnload": self._unload,
            "TraceSetting": self._trace, "LogSettings": self._logging,
        }  # fmt: skip
        for memory in ("SystemSharedMemory", "CudaSharedMemory"):
            for act in ("Status", "Register", "Unregister"):
                acts[memory + act] = self._shared_memory(memory + act)
        rows = {name: (f"{name}Request", f"{name}Response", act) for name, act in acts.items()}
        stream = ("ModelInferRequest", "ModelStreamInferResponse", self._stream)
        return {**rows, "ModelStreamInfer": stream}

    def _live(self, _request: object, _context: object) -> object:
        return message("ServerLiveResponse", live=True)

    def _ready(self, _request: object, _context: object) -> object:
        return message("ServerReadyResponse", ready=self.server.ready)

    def _model_ready(self, request: NamedRequest, _context: object) -> object:
        try:
            self.server.served(request.name, request.version)
        except RequestError:
            return message("ModelReadyResponse", ready=False)
        return message("ModelReadyResponse", ready=True)

    def _metadata(self, _request: object, _context: object) -> object:
        response_class = message_class("ServerMetadataResponse")
        return response_class(name=NAME, version=VERSION, extensions=EXTENSIONS)

    def _model_metadata(self, request: NamedRequest, _context: object) -> object:
        fields = model_metadata(self.server, self.server.served(request.name, request.version))
        return message_class("ModelMetadataResponse")(**fields)

    def _config(self, request: NamedRequest, _context: object) -> object:
        config = message("ModelConfig")
        config.CopyFrom(self.server.served(request.name, request.version).settings.config)
        config.name = request.name
        return message("ModelConfigResponse", config=config)

    def _statistics(self, request: NamedRequest, _context: object) -> object:
        rows = statistics_of(self.server, request.name, request.version)
        return message("ModelStatisticsResponse", model_stats=rows)

    def _index(self, request: IndexRequest, _context: object) -> object:
        return message("RepositoryIndexResponse", models=self.server.index(request.ready))

    def _load(self, request: RepositoryRequest, _context: object) -> object:
        if request.parameters:
            raise RequestError("parameters of load: this server loads the repository's own files")
        self.server.load(request.model_name)
        return message("RepositoryModelLoadResponse")

    def _unload(self, request: RepositoryRequest, _context: object) -> object:
        self.server.unload(request.model_name)
        return message("RepositoryModelUnloadResponse")

    def _shared_memory(self, name: str) -> Act:
        def act(_request: object, _context: object) -> object:
            if name.endswith("Register"):
                raise RequestError("this server has no shared memory: send tensors in messages",
                                   status=501)  # fmt: skip
            return message(f"{name}Response")

        return act

    def _trace(self, request: TraceRequest, _context: object) -> object:
        if request.model_name:
            self.server.served(request.model_name)
        settings = {name: list(one.value) for name, one in request.settings.items()}
        plain = {
            name: values if name == "trace_level" and values else values[0] if values else None
            for name, values in settings.items()
        }
        response = message("TraceSettingResponse")
        for name, value in self.settings.trace(plain).items():
            response.settings[name].value.extend(value if isinstance(value, list) else [value])
        return response

    def _logging(self, request: LogRequest, _context: object) -> object:
        values = {name: getattr(one, one.WhichOneof("parameter_choice") or "string_param")
                  for name, one in request.settings.items()}  # fmt: skip
        response = message("LogSettingsResponse")
        fields = {bool: "bool_param", int: "uint32_param", str: "string_param"}
        for name, value in self.settings.logging(values).items():
            setattr(response.settings[name], fields[type(value)], value)
        return response

    def _infer(self, request: ModelInferRequest, context: CallContext | None) -> object:
        query, output_options = infer_request(request)
        with self.settings.recorded("GRPC", query.id) as record:
            response = self.server.infer(query, context.add_callback if context else None)
            record(response)
        return infer_response(response, output_options)

    def _stream(
        self, requests: Iterator[ModelInferRequest], context: CallContext
    ) -> Iterator[object]:
        """Answer the requests of a stream in their order; several are under way at once."""
        waiting: queue.Queue[Future[object] | None] = queue.Queue(STREAMS)
        pool = ThreadPoolExecutor(16, thread_name_prefix="stream")

        def read() -> None:
            try:
                for request in requests:
                    waiting.put(pool.submit(self._streamed, request))
            finally:
                waiting.put(None)

        reader = pool.submit(read)
        try:
            while (future := waiting.get()) is not None:
                yield future.result()
        finally:
            context.cancel() if not reader.done() else None
            pool.shutdown(wait=False, cancel_futures=True)

    def _streamed(self, request: ModelInferRequest) -> object:
        try:
            return message("ModelStreamInferResponse", infer_response=self._infer(request, None))
        except (RequestError, TensorError, PvaError) as error:
            failed = message("ModelStreamInferResponse", error_message=" ".join(str(error).split()))
            failed.infer_response.id = request.id
            return failed


def _parameters(parameters: Mapping[str, Message]) -> dict[str, object]:
    fields = {name: one.WhichOneof("parameter_choice") for name, one in parameters.items()}
    return {name: getattr(parameters[name], field) for name, field in fields.items() if field}


def infer_request(request: ModelInferRequest) -> tuple[InferRequest, OutputOptions]:
    """Read a request; return how outputs are wanted, too. Raises RequestError and TensorError."""
    raw = list(request.raw_input_contents)
    if raw and len(raw) != len(request.inputs):
        raise RequestError(f"{len(raw)} raw contents for {len(request.inputs)} inputs")
    inputs: dict[str, Array] = {}
    for number, tensor in enumerate(request.inputs):
        name, shape = tensor.name, list(tensor.shape)
        if not name or name in inputs:
            raise RequestError(f"inputs: {name!r} twice, or without a name")
        if tensor.datatype not in DATATYPES:
            datatypes = ", ".join(DATATYPES)
            raise RequestError(f"input {name!r}: datatype {tensor.datatype!r}; one of {datatypes}")
        if any(key.startswith("shared_memory") for key in tensor.parameters):
            raise RequestError(f"input {name!r}: this server has no shared memory", status=501)
        count = elements_of(name, shape, MAX_ELEMENTS)
        if raw:
            inputs[name] = from_bytes(name, tensor.datatype, shape, raw[number])
        else:
            inputs[name] = _contents(tensor, count).reshape(shape)
    outputs = {output.name: _parameters(output.parameters) for output in request.outputs}
    query = InferRequest(request.model_name, request.model_version, request.id,
                         _parameters(request.parameters), inputs, list(outputs),
                         {tensor.name: tensor.datatype for tensor in request.inputs})  # fmt: skip
    return query, outputs


def _contents(tensor: InputTensor, count: int) -> Array:
    """Return the elements of an input that came one by one; raises RequestError."""
    _, dtype, field = DATATYPES[tensor.datatype]
    if not field:
        raise RequestError(f"input {tensor.name!r}: {tensor.datatype} needs raw contents")
    values = getattr(tensor.contents, field)
    if len(values) != count:
        raise RequestError(
            f"input {tensor.name!r}: {len(values):,} values; {count:,} for its shape"
        )
    if tensor.datatype == "BYTES":
        return objects(list(values))
    try:
        return np.array(values, np.dtype(dtype))
    except OverflowError:
        raise RequestError(
            f"input {tensor.name!r}: a value that is not {tensor.datatype}"
        ) from None


def infer_response(response: InferResponse, output_options: OutputOptions) -> object:
    """Write an answer, its outputs as raw bytes."""
    body = message("ModelInferResponse", model_name=response.model,
                   model_version=response.version, id=response.id)  # fmt: skip
    for name, value in response.parameters.items():
        field = "double_param" if isinstance(value, float) else "int64_param"
        setattr(body.parameters[name], field, value)
    for tensor, array in response.outputs:
        datatype = tensor.datatype
        classes = output_options.get(tensor.name, {}).get("classification")
        if classes is not None:
            array = classification.classes(response.settings, tensor, array, classes)
            datatype = "BYTES"
        body.outputs.add(name=tensor.name, datatype=datatype, shape=array.shape)
        body.raw_output_contents.append(to_bytes(datatype, array))
    return body
