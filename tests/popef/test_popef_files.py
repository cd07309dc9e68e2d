"""PopEF files: what is written is read, and what is not ours or damaged is refused in a line."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest

from pva.errors import DamagedFileError, OverwriteError, PvaError, UnknownFormatError
from simulator import popef
from simulator.popef import DataType, TensorType
from simulator.popef.document import markdown

HALVES = popef.TensorInfo(shape=[2, 3], dataType=DataType.F16)
VALUES = np.arange(6, dtype=np.float16).reshape(2, 3)
METADATA = popef.Metadata(
    executable="net",
    anchors=[popef.Anchor(name="x", handle="h2d_x", tensorInfo=HALVES, type=TensorType.INPUT)],
    programFlow=popef.ProgramFlow(load=[0], main=[5]),
    programsMap={5: "Program"},
    engineOptions=[popef.Option(name="a", value="1")],
)
DOCUMENT = Path(__file__).parents[2] / "docs" / "popef-format.md"


@pytest.fixture
def path(tmp_path):
    """Write a file with a blob of each type."""
    file = tmp_path / "net.popef"
    with popef.FileWriter(file) as writer:
        writer.write(METADATA)
        writer.createExecutable("net", compress=True).write(b"program" * 100)
        tensor = writer.createTensorData(popef.TensorDataInfo(name="x", tensorInfo=HALVES))
        tensor.write(VALUES[:1].tobytes())
        tensor.write(VALUES[1:].tobytes() + b"more", 6)
        feed = popef.FeedDataInfo(name="x", tensorInfo=HALVES, numTensors=2)
        writer.createFeedData(feed).write(np.stack([VALUES, -VALUES]))
        writer.createOpaqueBlob("popart", "net").write(b"state")
    return file


def read(file):
    reader = popef.Reader()
    reader.parseFile(file)
    return reader


def test_blobs_are_read_as_they_were_written(path):
    reader = read(path)
    assert reader.metadata() == [METADATA]
    (executable,), (opaque,) = reader.executables(), reader.opaqueBlobs()
    assert (executable.name, executable.executable()) == ("net", b"program" * 100)
    assert (opaque.name, opaque.executable, opaque.data()) == ("popart", "net", b"state")
    assert opaque.getAvailableReadSize() == 5
    np.testing.assert_array_equal(reader.tensors()[0].data(), VALUES)
    np.testing.assert_array_equal(reader.feeds()[0].data(), [VALUES, -VALUES])
    assert reader.blobs[1].end - reader.blobs[1].start < 700  # compressed


def test_a_stream_and_files_joined_end_to_end_are_read_alike(path):
    other = io.BytesIO(path.read_bytes().replace(b'"net"', b'"net"'))
    reader = popef.Reader()
    reader.parseStream(other)
    assert [blob.type for blob in reader.blobs] == [blob.type for blob in read(path).blobs]
    with pytest.raises(PvaError, match="a second executable 'net'"):
        popef.Reader().parseStream(io.BytesIO(path.read_bytes() * 2))
    tensors = path.read_bytes()[reader.blobs[2].start : reader.blobs[3].start]
    twice = popef.Reader()
    twice.parseStream(io.BytesIO(tensors * 2))
    assert len(twice.tensors()) == 2


def test_blobs_are_added_to_a_file_that_is_ours_and_no_other_is_replaced(path, tmp_path):
    with popef.FileWriter(path, popef.Mode.APPEND) as writer:
        writer.createOpaqueBlob("poptorch", "net").write(b"more")
    assert [blob.name for blob in read(path).opaqueBlobs()] == ["popart", "poptorch"]
    theirs = tmp_path / "notes.popef"
    theirs.write_bytes(b"my notes")
    with pytest.raises(OverwriteError, match="no PopEF file of tilescope"):
        popef.FileWriter(theirs)
    assert theirs.read_bytes() == b"my notes"


def test_a_writer_that_fails_leaves_the_file_as_it_was(path):
    before = path.read_bytes()
    info, needed = popef.TensorDataInfo(name="x", tensorInfo=HALVES), "has 3 bytes; 12 are needed"
    with pytest.raises(PvaError, match=needed), popef.FileWriter(path) as writer:
        writer.createTensorData(info).write(b"abc")
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]


def test_a_blob_ends_when_the_next_one_begins(path):
    writer = popef.Writer(path)
    first = writer.createOpaqueBlob("a", "net")
    writer.createOpaqueBlob("b", "net")
    with pytest.raises(PvaError, match="this blob is closed"):
        first.write(b"late")


def test_a_foreign_file_is_named_as_what_it_may_be(tmp_path):
    foreign = tmp_path / "foreign.popef"
    foreign.write_bytes(b"\0\0\0\0\x08\0\0\0" + bytes(100))
    with pytest.raises(UnknownFormatError, match="PopEF of Graphcore's SDK: its layout is not"):
        read(foreign)


def test_every_cut_and_every_flipped_bit_is_refused(path):
    content = path.read_bytes()
    ends = {blob.end for blob in read(path).blobs}
    for end in set(range(1, len(content), 97)) - ends:
        with pytest.raises(PvaError):
            popef.Reader().parseStream(io.BytesIO(content[:end]))
    for place in range(0, len(content), 41):
        spoilt = bytearray(content)
        spoilt[place] ^= 4
        assert spoils(bytes(spoilt), content), place


def spoils(spoilt, content):
    """Return whether what is read is refused; a byte between blobs belongs to none."""
    try:
        whole = contents(spoilt)
    except PvaError:
        return True
    return whole == contents(content)


def contents(content):
    reader = popef.Reader()
    reader.parseStream(io.BytesIO(content))
    parts = [*reader.executables(), *reader.tensors(), *reader.feeds(), *reader.opaqueBlobs()]
    held = [p.executable() if hasattr(p, "load") else bytes(p.data()) for p in parts]
    return [metadata.values() for metadata in reader.metadata()], held


def test_sizes_that_the_file_does_not_have_take_no_memory(path):
    blob = read(path).blobs[2]  # a tensor, whose head gets a checksum that fits
    content = bytearray(path.read_bytes()[blob.start : blob.end])
    text = content[48 : 48 + blob.structure_bytes].replace(b'["2","3"]', b'["2","9999999999"]')
    text = text.rstrip(b" ")
    text += b" " * (-len(text) % 8)
    payload = content[48 + blob.structure_bytes :]
    numbers = list(struct.unpack("<8sHHIIIQQII", content[:48]))
    numbers[4], numbers[6], numbers[5] = len(text), 48 + len(text) + len(payload), 0
    numbers[5] = zlib.crc32(text, zlib.crc32(struct.pack("<8sHHIIIQQII", *numbers)))
    large = struct.pack("<8sHHIIIQQII", *numbers) + text + payload
    tracemalloc.start()
    with pytest.raises(DamagedFileError, match="are needed"):
        popef.Reader().parseStream(io.BytesIO(large))
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("kind", "values", "found"),
    [
        (popef.TensorInfo, {"shape": ["-1"]}, r"TensorInfo.shape: \['-1'\]"),
        (popef.Metadata, {"numIpus": 1}, "Metadata.numIpus: 1; whole number, in quotes"),
        (popef.Metadata, {"isPOD": "yes"}, "Metadata.isPOD"),
        (popef.Metadata, {"anchors": [{"type": "up"}]}, r"Metadata.anchors\[0\].type: 'up'"),
        (popef.Anchor, [], "an object is needed"),
    ],
)
def test_a_wrong_field_is_named(kind, values, found):
    with pytest.raises(PvaError, match=found):
        kind.of_values(values)


def test_fields_of_a_later_version_are_passed_over():
    assert popef.Option.of_values({"name": "a", "unit": "s"}) == popef.Option(name="a")
    with pytest.raises(PvaError, match="Option: no field 'unit'; there are name, value"):
        popef.Option(unit="s")


def test_a_model_has_one_executable_and_the_tensors_of_its_anchors(path, tmp_path):
    model = popef.load_model(path)
    assert (model.executable.name, len(model.tensors), len(model.feeds)) == ("net", 1, 1)
    alone = tmp_path / "alone.popef"
    with popef.FileWriter(alone) as writer:
        writer.write(METADATA)
    with pytest.raises(PvaError, match="no executable of 'net'"):
        popef.load_model(alone)
    with pytest.raises(PvaError, match="2 times metadata"):
        popef.load_model([path, alone])


def test_sizes_in_bytes_follow_from_shape_and_type():
    assert HALVES.sizeInBytes() == 12
    assert popef.TensorInfo(dataType=DataType.S64).sizeInBytes() == 8  # a scalar
    assert popef.TensorInfo(shape=[3, 0], dataType=DataType.F8143).sizeInBytes() == 0


def test_the_document_is_that_of_the_declaration():
    assert DOCUMENT.read_text() == markdown()
