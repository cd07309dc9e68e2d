from __future__ import annotations

from pathlib import Path

import pytest

from pva.errors import PvaError
from simulator.serving.repository import name_map, read_model, read_models
from tests.serving.test_model_config import LISTING, folder


def model(path: Path, more: str = "", versions: tuple[str, ...] = ("1",)) -> Path:
    found = folder(path, LISTING + more)
    for name in versions:
        (found / name).mkdir()
        (found / name / "executable.popef").write_bytes(b"")
    return found


def test_the_highest_version_is_served_and_only_numbers_are_versions(tmp_path: Path) -> None:
    found = model(tmp_path, versions=("2", "10", "old", "03"))
    (found / "10" / "weights.popef").write_bytes(b"")
    (found / "10" / "name_map.json").write_text('{"a\\/b": "image"}')
    (served,) = read_models(tmp_path)["mnist"].versions
    assert served.number == 10 and served.weights is not None
    assert served.names == {"a/b": "image"}


@pytest.mark.parametrize(
    ("policy", "numbers"),
    [("all {}", [1, 2, 3]), ("latest { num_versions: 2 }", [2, 3]),
     ("specific { versions: [ 3, 1 ] }", [1, 3]), ("latest {}", [3])],
)  # fmt: skip
def test_a_version_policy_chooses_versions(tmp_path: Path, policy: str, numbers: list) -> None:
    model(tmp_path, f"version_policy {{ {policy} }}", ("1", "2", "3"))
    assert [one.number for one in read_model(tmp_path, "mnist").versions] == numbers


def test_a_repository_that_lacks_something_is_one_line_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(PvaError, match="no model; a folder a model"):
        read_models(tmp_path)
    found = model(tmp_path, "version_policy { specific { versions: 4 } }")
    with pytest.raises(PvaError, match="version_policy.specific.versions: 4; there are 1"):
        read_models(tmp_path)
    (found / "config.pbtxt").unlink()
    with pytest.raises(PvaError, match=r"mnist/config.pbtxt: no such file"):
        read_models(tmp_path)
    folder(tmp_path, LISTING)
    (found / "1" / "executable.popef").unlink()
    with pytest.raises(PvaError, match=r"1/executable.popef: no such file"):
        read_models(tmp_path)
    (found / "1").rmdir()
    with pytest.raises(PvaError, match=r"mnist: no version; a folder as 1/"):
        read_models(tmp_path)


@pytest.mark.parametrize("name", ["", "..", "../mnist", "no", "a\0b"])
def test_a_name_leads_nowhere_but_into_the_repository(tmp_path: Path, name: str) -> None:
    model(tmp_path)
    with pytest.raises(PvaError, match="no model .*; there are mnist"):
        read_model(tmp_path, name)


@pytest.mark.parametrize(
    ("text", "words"),
    [("[]", "no object"), ('{"a": 1}', "a: 1; a name"), ('{"a": "x", "b": "x"}', "'x' twice"),
     ('{"a": "x", "a": "y"}', "'y' twice"), ("{", "no JSON"), ('{"a": {"b": "c"}}', "a name")],
)  # fmt: skip
def test_a_name_map_that_is_none_is_one_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "name_map.json"
    path.write_text(text)
    with pytest.raises(PvaError, match=words) as raised:
        name_map(path)
    assert "name_map.json: " in str(raised.value)
