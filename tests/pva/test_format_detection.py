"""A file is what its first bytes say; its suffix counts where they say nothing."""

from pathlib import Path

import cbor2
import pytest

from pva.errors import PvaError
from pva.formats import registry
from pva.formats.documents.json_profile import encoded
from tests.builders import small_report

FORMATS = ("pop", "json", "cbor", "plain")


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("suffix", [".pop", ".json", ".cbor", ".dat", ""])
def test_content_decides_before_the_suffix(tmp_path: Path, name: str, suffix: str) -> None:
    path = tmp_path / f"report{suffix}"
    registry.write(small_report(), path, name)
    assert registry.detect(path).name == {"plain": "cbor"}.get(name, name)
    assert registry.read(path) == small_report()


@pytest.mark.parametrize(
    "before", [b"", b"\xef\xbb\xbf", b" \r\n\t", 100 * b"\n"], ids=["", "mark", "blanks", "page"]
)
def test_json_may_begin_with_a_byte_order_mark_or_blanks(tmp_path: Path, before: bytes) -> None:
    path = tmp_path / "report.json"
    text = encoded(registry.value_of(small_report(), "graph"), pretty=True)
    path.write_bytes(before + text)
    assert registry.read(path) == small_report().select("graph")


@pytest.mark.parametrize("tag", [55799, 1234])
def test_cbor_may_begin_with_a_tag(tmp_path: Path, tag: int) -> None:
    path = tmp_path / "report.cbor"
    value = registry.value_of(small_report(), "graph")
    path.write_bytes(cbor2.dumps(cbor2.CBORTag(tag, value)))
    if tag == 55799:  # that of self-described CBOR
        assert registry.read(path) == small_report().select("graph")
    else:
        with pytest.raises(PvaError, match="CBORTag"):
            registry.read(path)


def test_a_map_of_cbor_may_have_a_length_of_any_width(tmp_path: Path) -> None:
    value = registry.value_of(small_report(), "graph")
    items = b"".join(cbor2.dumps(part) for pair in value.items() for part in pair)
    for head, width in ((0xB8, 1), (0xB9, 2), (0xBA, 4), (0xBB, 8)):
        path = tmp_path / f"{head:x}.cbor"
        path.write_bytes(bytes([head]) + len(value).to_bytes(width, "big") + items)
        assert registry.detect(path).name == "cbor"
        assert registry.read(path) == small_report().select("graph")


@pytest.mark.parametrize(
    ("files", "preferred"),
    [
        (("profile.pop", "profile.cbor", "profile.json"), "profile.pop"),
        (("archive.pop", "profile.cbor", "profile.json"), "archive.pop"),
        (("archive.pop", "profile.pop"), "profile.pop"),
        (("profile.cbor", "profile.json"), "profile.cbor"),
    ],
)
def test_of_several_profiles_in_a_directory_the_preferred_name_is_read(
    tmp_path: Path, files: tuple[str, ...], preferred: str
) -> None:
    for name in files:
        (tmp_path / name).write_bytes(b"not a report")
    registry.write(small_report(), tmp_path / preferred)
    assert registry.directory_files(tmp_path)["profile"] == tmp_path / preferred
    assert registry.read(tmp_path) == small_report()
