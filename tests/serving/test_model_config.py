from __future__ import annotations

from pathlib import Path

import pytest

from pva.errors import PvaError
from simulator.serving.model_config import parsed, read_settings
from simulator.serving.triton_messages.protocol import message, message_class

# Listing 1.3 of the Poplar Triton Backend user guide, with its braces.
LISTING = """
name: "mnist"
backend: "poplar"
max_batch_size: 256000
dynamic_batching {
  preferred_batch_size: [ 2560 ]
  max_queue_delay_microseconds: 500000
}
input [ { name: "input" data_type: TYPE_FP32 dims: [ 1, 28, 28 ] } ]
output [ { name: "softmax" data_type: TYPE_FP32 dims: [ 10 ] } ]
instance_group [ { kind: KIND_CPU } ]
parameters [
  { key: "timeout_ns" value: { string_value: "500000" } },
  { key: "synchronous_execution" value: { string_value: "1" } }
]
"""


def folder(path: Path, text: str, name: str = "mnist") -> Path:
    path = path / name
    path.mkdir(exist_ok=True)
    (path / "config.pbtxt").write_text(text)
    return path


def test_the_listing_of_the_user_guide_is_read_to_the_letter(tmp_path: Path) -> None:
    found = read_settings(folder(tmp_path, LISTING))
    assert (found.name, found.instances, found.timeout_ns, found.synchronous) == (
        "mnist", 1, 500_000, True,
    )  # fmt: skip
    rules = found.rules
    assert (rules.most_rows, rules.preferred, rules.delay_ns) == (256_000, (2_560,), 500_000_000)
    assert [(one.name, one.datatype, one.dims) for one in found.inputs + found.outputs] == [
        ("input", "FP32", (1, 28, 28)), ("softmax", "FP32", (10,)),
    ]  # fmt: skip


def test_queues_delays_instances_and_what_is_ignored_are_read(tmp_path: Path) -> None:
    more = """
    optimization { input_pinned_memory { enable: false } }
    parameters { key: "execute_delay_ms" value { string_value: "2" } }
    parameters { key: "instance_wise_delay_multiplier" value { string_value: "3" } }
    parameters { key: "colour" value { string_value: "blue" } }
    """
    queues = """dynamic_batching {
      priority_levels: 2 default_priority_level: 2 preserve_ordering: true
      default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 7 }
      priority_queue_policy { key: 1 value { max_queue_size: 9 allow_timeout_override: true } }
    }"""
    before, _, after = LISTING.partition("dynamic_batching {")
    text = before + queues + after.partition("}\n")[2] + more
    text = text.replace("{ kind: KIND_CPU }", "{ kind: KIND_CPU count: 2 }, { kind: KIND_CPU }")
    found = read_settings(folder(tmp_path, text))
    assert found.instances == 3
    assert found.wait_ns == (2_000_000, 6_000_000, 12_000_000)  # max(3 * number, 1) * 2 ms
    assert found.rules.in_order and found.rules.default_level == 2
    assert found.rules.of_level(1).most_waiting == 9 and found.rules.of_level(1).overridable
    assert (found.rules.of_level(2).timeout_ns, found.rules.of_level(2).delays) == (7_000, True)
    assert found.ignored == ("optimization", "parameters.colour")


CHANGES = [
    ('name: "mnist"', 'name: "other"', "name: 'other'; the name of the model's folder, 'mnist'"),
    ('"poplar"', '"onnxruntime"', "backend: 'onnxruntime'"),
    ('backend: "poplar"', "", "backend: missing"),
    ("256000", "-1", "max_batch_size: -1"),
    ("256000", "0", "dynamic_batching: max_batch_size is 0"),
    ("2560 ]", "256001 ]", "dynamic_batching.preferred_batch_size: 256001; 1 to max_batch_size"),
    ("max_queue_delay", "max_delay", "line 7, field max_delay_microseconds: .* has no field"),
    ('"500000"', '"soon"', "parameters.timeout_ns: 'soon'; whole nanoseconds"),
    ('"1" } }\n]', '"2" } }\n]', "parameters.synchronous_execution: '2'"),
    ("KIND_CPU", "KIND_GPU", r"instance_group\[0\].kind: KIND_GPU; KIND_CPU"),
    ("KIND_CPU", "KIND_CPU count: -2", r"instance_group\[0\].count: -2"),
    ("KIND_CPU", "KIND_CPU gpus: 0", r"instance_group\[0\].gpus"),
    ("[ 10 ]", "[ 0 ]", r"output\[0\].dims: \[0\]; sizes from 1 on, or -1"),
    ("dims: [ 10 ]", "", r"output\[0\].dims: missing"),
    ("[ 10 ]", "10 reshape { shape: [ 2, 4 ] }", r"output\[0\].reshape.shape: \[2, 4\]"),
    ("TYPE_FP32 dims: [ 10 ]", "TYPE_FLOAT dims: [ 10 ]", "line 10, field data_type"),
    ("data_type: TYPE_FP32 dims: [ 10 ]", "dims: [ 10 ]", r"output\[0\].data_type: missing"),
    ('name: "softmax"', "", r"output\[0\].name: missing"),
    ("output [", "input [", r"output: missing"),
    ("dims: [ 1, 28", "optional: true dims: [ 1, 28", r"input\[0\].optional: true"),
    ("2560 ]", '"many" ]', "line 6, field preferred_batch_size"),
    ("backend", "sequence_batching {} backend", "sequence_batching|oneof"),
    ("instance_group", "model_warmup { name: 'w' inputs { key: 'x' value {} } } instance_group",
     r"model_warmup\[0\].inputs: "),
    ("2560 ]", "2560 ] priority_levels: 3", "dynamic_batching.default_priority_level: 0"),
    ("backend", "version_policy { specific { versions: 0 } } backend", "version_policy.specific"),
    ("instance_group [", "instance_group {", "line 11|line 12"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "words"), CHANGES)
def test_a_wrong_field_is_one_line_that_names_file_and_field(
    tmp_path: Path, before: str, after: str, words: str
) -> None:
    assert before in LISTING
    with pytest.raises(PvaError, match=words) as raised:
        read_settings(folder(tmp_path, LISTING.replace(before, after)))
    text = str(raised.value)
    assert "mnist/config.pbtxt: " in text and "\n" not in text and len(text) < 400


def test_text_that_is_no_text_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(PvaError, match="byte 0 is no UTF-8"):
        parsed(tmp_path, b"\xff\xfe")


def test_messages_stay_out_of_the_pool_that_other_libraries_use() -> None:
    from google.protobuf import descriptor_pool

    message("ModelInferRequest", model_name="m")
    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName("inference.ModelInferRequest")


def test_bytes_on_the_wire_are_those_of_the_field_numbers() -> None:
    # Protocol buffers: key = number << 3 | type; model_name is 1, id 3, both of type 2.
    request = message("ModelInferRequest", model_name="m", id="7")
    assert request.SerializeToString() == b"\x0a\x01m\x1a\x017"
    policy = message("ModelDynamicBatching")
    policy.priority_queue_policy[3].max_queue_size = 2  # a map from uint64, field 7
    assert policy.SerializeToString() == b"\x3a\x06\x08\x03\x12\x02\x20\x02"
    assert message_class("ModelConfig").DESCRIPTOR.fields_by_name["backend"].number == 17
