"""`config.pbtxt`: read, checked field by field, and turned into the settings of a served model.

Each fault is one line that names the file and the field. What Triton knows and a simulated IPU has
no use for is kept and listed in `ignored`. Source: Triton, docs/user_guide/model_configuration.md;
Poplar Triton Backend user guide, section 1.4.3.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from google.protobuf import text_format

from pva.errors import PvaError
from pva.plain_file import contents
from pva.queueing.rules import Policy, Rules
from simulator.serving.triton_messages.message_types import DeclaredTensor, ModelConfig, QueuePolicy
from simulator.serving.triton_messages.protocol import message
from simulator.serving.triton_messages.tensors import datatype_of

FILE, FORMAT = "config.pbtxt", "a model's configuration"
LIMIT = 4 << 20  # bytes
BACKEND = "poplar"
US, MS = 1000, 1_000_000  # in ns
IGNORED = ("optimization", "default_model_filename", "cc_model_filenames", "metric_tags",
           "model_operations", "model_repository_agents", "response_cache", "model_metrics",
           "runtime", "platform")  # fmt: skip
REFUSED = {
    "sequence_batching": "dynamic_batching, or no batching",
    "ensemble_scheduling": "one executable a model",
    "batch_input": "inputs of requests alone",
    "batch_output": "outputs of the executable alone",
}
PARAMETERS = ("timeout_ns", "synchronous_execution", "execute_delay_ms",
              "instance_wise_delay_multiplier")  # fmt: skip
MAX_INSTANCES, MAX_ELEMENTS = 256, 1 << 40
_FIELD = re.compile(r"(\w+)\s*:?\s*(?:\[[^\]{<:]*|[{<])?\s*$")
_NO_VALUE = re.compile(r"has no value named (\w+)")
_NO_FIELD = re.compile(r'has no field named "(\w+)"')


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output as clients see it: shape without the batch, -1 where it is open."""

    name: str
    datatype: str
    dims: tuple[int, ...]
    reshape: tuple[int, ...] | None = None
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """What `config.pbtxt` says of a model; `config` is the whole message."""

    path: Path
    name: str
    config: ModelConfig
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    rules: Rules
    instances: int
    timeout_ns: int
    synchronous: bool
    execute_delay_ms: float
    delay_multiplier: float
    ignored: tuple[str, ...]

    @property
    def wait_ns(self) -> tuple[int, ...]:
        """What each instance waits before a batch: a delay that tests of Triton ask for."""
        return tuple(
            round(max(self.delay_multiplier * number, 1) * self.execute_delay_ms * MS)
            for number in range(self.instances)
        )


def read_settings(folder: Path) -> Settings:
    """Read and check the configuration of a model; raises PvaError."""
    path = folder / FILE
    return settings_of(path, parsed(path, contents(path, FORMAT, LIMIT)), folder.name)


def parsed(path: Path, data: bytes) -> ModelConfig:
    """Parse the text of a configuration; raises PvaError."""
    config: ModelConfig = message("ModelConfig")
    try:
        text = data.decode()
        text_format.Parse(text, config)
    except UnicodeDecodeError as error:
        raise PvaError(path, f"byte {error.start} is no UTF-8", "text") from None
    except text_format.ParseError as error:
        raise _unparsed(path, text, error) from None
    except ValueError as error:  # a number of an enum that no int32 holds
        raise PvaError(path, str(error), "protobuf text, a field of ModelConfig each") from None
    return config


def _unparsed(path: Path, text: str, error: text_format.ParseError) -> PvaError:
    """Name the line and the field of a fault of the text."""
    line, column = error.GetLine() or 1, error.GetColumn() or 1
    reason = str(error).rpartition("' : '")[2] if "' : '" in str(error) else str(error)
    reason = re.sub(r"^\d+:\d+ : ('.*': )?", "", reason.replace("inference.", ""), flags=re.DOTALL)
    lines = text.splitlines() or [""]
    last = lines[min(line, len(lines)) - 1]
    value = _NO_VALUE.search(reason)  # of an enum, behind which the place stands that is named
    last = last.partition(value[1])[0] if value else last[: column - 1]
    before = "\n".join([*lines[: line - 1], last])
    field = _NO_FIELD.search(reason) or _FIELD.search(before)
    place = f"line {line}" + (f", field {field[1]}" if field else "")
    return PvaError(path, reason, "protobuf text, a field of ModelConfig each", place=place)


class _Faults:
    """Raise what is wrong with a field of a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, field: str, value: object, expected: str) -> PvaError:
        return PvaError(self.path, f"{value}", expected, place=field)


def settings_of(path: Path, config: ModelConfig, folder: str) -> Settings:
    """Check a configuration; raises PvaError."""
    fault = _Faults(path)
    _check_whole(config, folder, fault)
    _check_unsupported(config, fault)
    rules = _rules(config, fault)
    instances = _instances(config, fault)
    inputs = tuple(_tensors(config.input, "input", fault))
    outputs = tuple(_tensors(config.output, "output", fault))
    numbers = _parameters(config, fault)
    ignored = [name for name in IGNORED if _is_set(config, name)]
    ignored += [f"parameters.{name}" for name in config.parameters if name not in PARAMETERS]
    _check_warmup(config, inputs, fault)
    return Settings(
        path, config.name or folder, config, inputs, outputs, rules, instances,
        int(numbers["timeout_ns"]), bool(numbers["synchronous_execution"]),
        numbers["execute_delay_ms"], numbers["instance_wise_delay_multiplier"], tuple(ignored),
    )  # fmt: skip


def _is_set(config: ModelConfig, name: str) -> bool:
    return any(field.name == name for field, _ in config.ListFields())


def _check_whole(config: ModelConfig, folder: str, fault: _Faults) -> None:
    if config.name and config.name != folder:
        raise fault("name", f"{config.name!r}", f"the name of the model's folder, {folder!r}")
    if config.backend != BACKEND:
        backend = f"{config.backend!r}" if config.backend else "missing"
        raise fault("backend", backend, f'"{BACKEND}"')
    if config.max_batch_size < 0:
        raise fault("max_batch_size", config.max_batch_size, "0 or more rows")
    for field in ("input", "output"):
        if not getattr(config, field):
            raise fault(field, "missing", f"each {field} with name, data_type and dims")


def _check_unsupported(config: ModelConfig, fault: _Faults) -> None:
    for name, expected in REFUSED.items():
        if _is_set(config, name):
            raise fault(name, "not supported", expected)
    if config.model_transaction_policy.decoupled:
        raise fault("model_transaction_policy.decoupled", "true", "one answer a request")
    policy = config.version_policy
    if policy.WhichOneof("policy_choice") == "specific" and min(policy.specific.versions) < 1:
        raise fault("version_policy.specific.versions", "below 1", "numbers of versions")


def _tensors(declared: Sequence[DeclaredTensor], field: str, fault: _Faults) -> Iterator[Tensor]:
    names: set[str] = set()
    for number, tensor in enumerate(declared):
        place = f"{field}[{number}]"
        if not tensor.name or tensor.name in names:
            problem = f"{tensor.name!r} twice" if tensor.name else "missing"
            raise fault(f"{place}.name", problem, "a name of its own")
        names.add(tensor.name)
        if not tensor.data_type:
            raise fault(f"{place}.data_type", "missing", "a type, as TYPE_FP32")
        dims = _dims(tensor.dims, f"{place}.dims", fault)
        for name in ("is_shape_tensor", "is_non_linear_format_io", "allow_ragged_batch"):
            if getattr(tensor, name, False):
                raise fault(f"{place}.{name}", "true", "false: a program has fixed shapes")
        if getattr(tensor, "optional", False):
            raise fault(f"{place}.optional", "true", "false: a program needs all of its inputs")
        reshape = _reshape(tensor, dims, place, fault)
        yield Tensor(tensor.name, datatype_of(tensor.data_type), dims, reshape)


def _dims(dims: Sequence[int], place: str, fault: _Faults) -> tuple[int, ...]:
    if not dims:
        raise fault(place, "missing", "sizes without the batch; [ 1 ] with a reshape for a scalar")
    wrong = [size for size in dims if size < 1 and size != -1]
    if wrong or math.prod(max(size, 1) for size in dims) > MAX_ELEMENTS:
        raise fault(place, list(dims), "sizes from 1 on, or -1")
    return tuple(dims)


def _reshape(
    tensor: DeclaredTensor, dims: tuple[int, ...], place: str, fault: _Faults
) -> tuple[int, ...] | None:
    if not tensor.HasField("reshape"):
        return None
    shape = tuple(tensor.reshape.shape)
    if -1 not in shape and -1 not in dims and math.prod(shape) != math.prod(dims):
        expected = f"as many elements as dims, {math.prod(dims)}"
        raise fault(f"{place}.reshape.shape", list(shape), expected)
    return shape


def _instances(config: ModelConfig, fault: _Faults) -> int:
    count = 0
    for number, group in enumerate(config.instance_group):
        place = f"instance_group[{number}]"
        kind = group.DESCRIPTOR.fields_by_name["kind"].enum_type.values_by_number[group.kind].name
        if kind not in ("KIND_CPU", "KIND_AUTO"):
            raise fault(f"{place}.kind", kind, "KIND_CPU: a simulated IPU needs no GPU")
        if group.gpus:
            raise fault(f"{place}.gpus", list(group.gpus), "no GPU")
        if group.count < 0:
            raise fault(f"{place}.count", group.count, "1 or more instances")
        count += 0 if group.passive else group.count or 1
    if count > MAX_INSTANCES:
        raise fault("instance_group", f"{count} instances", f"at most {MAX_INSTANCES}")
    if config.instance_group and not count:
        raise fault("instance_group", "only passive groups", "one instance that takes requests")
    return count or 1


def _rules(config: ModelConfig, fault: _Faults) -> Rules:
    batching, most = config.dynamic_batching, config.max_batch_size
    dynamic = config.HasField("dynamic_batching")
    if not dynamic:
        return Rules(most_rows=max(most, 1))
    place = "dynamic_batching"
    if not most:
        raise fault(place, "max_batch_size is 0", "a max_batch_size from 1 on, or no batching")
    for size in batching.preferred_batch_size:
        if not 1 <= size <= most:
            raise fault(f"{place}.preferred_batch_size", size, f"1 to max_batch_size, {most}")
    levels, default = batching.priority_levels, batching.default_priority_level
    if levels > 100:
        raise fault(f"{place}.priority_levels", levels, "at most 100")
    if default > levels or (levels and not default):
        expected = f"a level from 1 to {levels}" if levels else "0, as there is one level"
        raise fault(f"{place}.default_priority_level", default, expected)
    wrong = [level for level in batching.priority_queue_policy if not 1 <= level <= levels]
    if wrong:
        raise fault(f"{place}.priority_queue_policy", f"level {wrong[0]}", f"1 to {levels}")
    policies = tuple((level, _policy(policy)) for level, policy in
                     sorted(batching.priority_queue_policy.items()))  # fmt: skip
    return Rules(
        most, True, tuple(batching.preferred_batch_size),
        _microseconds(batching.max_queue_delay_microseconds,
                      f"{place}.max_queue_delay_microseconds", fault),
        levels, default, _policy(batching.default_queue_policy), policies,
        batching.preserve_ordering,
    )  # fmt: skip


def _microseconds(value: int, place: str, fault: _Faults) -> int:
    if value > 10**12:
        raise fault(place, value, "at most 10^12, which is 11 days")
    return value * US


def _policy(policy: QueuePolicy) -> Policy:
    delays = policy.timeout_action == 1
    timeout = min(policy.default_timeout_microseconds, 10**12) * US
    return Policy(policy.max_queue_size, timeout, delays, policy.allow_timeout_override)


def _parameters(config: ModelConfig, fault: _Faults) -> dict[str, float]:
    """Return the backend's parameters as numbers; the texts hold them."""
    limits: dict[str, tuple[float, Callable[[str], float], str]] = {
        "timeout_ns": (1e15, int, 'whole nanoseconds, as "500000"'),
        "synchronous_execution": (1, int, '"0" or "1"'),
        "execute_delay_ms": (1e6, float, "milliseconds"),
        "instance_wise_delay_multiplier": (1e6, float, "a number"),
    }
    numbers = dict.fromkeys(limits, 0.0)
    for name in numbers:
        if name not in config.parameters:
            continue
        text = config.parameters[name].string_value
        most, convert, expected = limits[name]
        try:
            numbers[name] = convert(text)
        except ValueError:
            numbers[name] = -1
        if not 0 <= numbers[name] <= most:
            raise fault(f"parameters.{name}", f"{text!r}", expected)
    return numbers


def _check_warmup(config: ModelConfig, inputs: Sequence[Tensor], fault: _Faults) -> None:
    names = {tensor.name for tensor in inputs}
    for number, sample in enumerate(config.model_warmup):
        place = f"model_warmup[{number}]"
        if sample.batch_size > max(config.max_batch_size, 1):
            expected = f"at most max_batch_size, {config.max_batch_size}"
            raise fault(f"{place}.batch_size", sample.batch_size, expected)
        if set(sample.inputs) != names:
            wrong = sorted(names ^ set(sample.inputs))[0]
            raise fault(f"{place}.inputs", f"{wrong!r}", f"each of {', '.join(sorted(names))}")
        for name, one in sample.inputs.items():
            if one.WhichOneof("input_data_type") is None:
                expected = "zero_data, random_data or input_data_file"
                raise fault(f"{place}.inputs[{name!r}]", "no data", expected)
