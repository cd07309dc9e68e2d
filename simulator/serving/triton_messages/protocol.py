"""The messages of Triton as classes of protobuf, in a pool of their own.

Two libraries that put `inference.*` into protobuf's default pool cannot live in one process: this
one leaves it alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.message import Message

from simulator.serving.triton_messages.messages import MODEL, SERVICE

PACKAGE = "inference"
_FILES = {"model_config.proto": MODEL, "grpc_service.proto": SERVICE}
_LINE = re.compile(r"^(?:enum )?([\w.]+):((?:[^\n]|\n    )*)$", re.MULTILINE)
_FIELD = re.compile(r"(\d+) (\w+) (?:(map|map64) )?([\w.]+)(\*)?(?: \|(\w+))?")


def message(name: str, /, **fields: object) -> Any:
    """Return a new message, with fields set."""
    return _classes()[f"{PACKAGE}.{name}"](**fields)


def message_class(name: str) -> type[Any]:
    """Return the class of a message."""
    return _classes()[f"{PACKAGE}.{name}"]


@cache
def _classes() -> dict[str, type[object]]:
    pool = descriptor_pool.DescriptorPool()
    for name, text in _FILES.items():
        pool.Add(_file(name, text))
    classes: dict[str, type[Any]] = {}
    for name in _FILES:
        for descriptor in pool.FindFileByName(name).message_types_by_name.values():
            classes |= dict(_nested(descriptor))
    return classes


def _nested(descriptor: Descriptor) -> Iterator[tuple[str, type[Message]]]:
    yield descriptor.full_name, message_factory.GetMessageClass(descriptor)
    for inner in descriptor.nested_types:
        yield from _nested(inner)


def _file(name: str, text: str) -> FileDescriptorProto:
    file = FileDescriptorProto(name=name, package=PACKAGE, syntax="proto3")
    if text is SERVICE:
        file.dependency.append("model_config.proto")
    enums = set(re.findall(r"^enum ([\w.]+):", MODEL + SERVICE, re.MULTILINE))
    messages: dict[str, DescriptorProto] = {}
    for line in _LINE.finditer(text):
        path, body = line[1], " ".join(line[2].split())
        outer, _, short = path.rpartition(".")
        if path in enums:
            holder = messages[outer] if outer else file
            enum = holder.enum_type.add(name=short)
            for value in filter(None, body.split(", ")):
                label, number = value.split()
                enum.value.add(name=label, number=int(number))
            continue
        types = messages[outer].nested_type if outer else file.message_type
        messages[path] = types.add(name=short)
        for field in _FIELD.finditer(body):
            _add_field(messages[path], path, field, enums)
    return file


def _add_field(owner: DescriptorProto, path: str, match: re.Match[str], enums: set[str]) -> None:
    number, name, key, kind, repeated, group = match.groups()
    field = owner.field.add(name=name, number=int(number))
    field.label = FieldDescriptorProto.LABEL_REPEATED if repeated or key else (
        FieldDescriptorProto.LABEL_OPTIONAL
    )  # fmt: skip
    if key:
        title = "".join(part.capitalize() for part in name.split("_")) + "Entry"
        entry = owner.nested_type.add(name=title)
        entry.options.map_entry = True
        for place, (inner, of) in enumerate(
            (("key", "uint64" if key == "map64" else "string"), ("value", kind)), 1
        ):
            part = entry.field.add(name=inner, number=place)
            part.label = FieldDescriptorProto.LABEL_OPTIONAL
            _set_type(part, of, enums)
        _set_type(field, f"{path}.{title}", enums)
        return
    _set_type(field, kind, enums)
    if group:
        groups = [one.name for one in owner.oneof_decl]
        if group not in groups:
            owner.oneof_decl.add(name=group)
            groups.append(group)
        field.oneof_index = groups.index(group)


def _set_type(field: FieldDescriptorProto, kind: str, enums: set[str]) -> None:
    if kind[0].islower():
        field.type = getattr(FieldDescriptorProto, f"TYPE_{kind.upper()}")
        return
    of_enum = kind in enums
    field.type = FieldDescriptorProto.TYPE_ENUM if of_enum else FieldDescriptorProto.TYPE_MESSAGE
    field.type_name = f".{PACKAGE}.{kind}"
