"""`popef_dump` and `tilescope info` on PopEF files."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from cli.main import tilescope
from cli.popef_dump import popef_dump
from simulator.popef import Reader
from tests.popef.files import W, session


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("popef") / "net.popef"
    session().saveExecutable(file)
    return file


def printed(command, *arguments):
    result = CliRunner().invoke(command, [*map(str, arguments)])
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_the_dump_has_the_lines_of_the_log_and_blobs_follow_one_another(path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "43212")
    lines = printed(popef_dump, path).splitlines()
    head = r"\[12:00:12\.000\] \[popef:cpp\] \[debug\] "
    logged = [line for line in lines if line.startswith("[")]
    assert all(re.match(head, line) for line in logged)
    kinds = re.findall(r'Read header: {"version": "1", "type": "(\w+)", "size": "\d+"}', str(lines))
    assert kinds == ["metadata", "poplarExecutable", "opaque", "dataTensor"]
    places = [tuple(map(int, found)) for found in re.findall(r"start end: (\d+) (\d+)", str(lines))]
    assert [begin for begin, _ in places] == [0, *(end for _, end in places[:-1])]
    assert places[-1][1] == path.stat().st_size
    assert 'Read OpaqueBlob: {"name": "popart", "executable": "' in str(lines)
    assert '            "handle": "h2d_w",' in lines


def test_metadata_alone_is_json_and_all_reads_the_contents(path):
    reader = Reader()
    reader.parseFile(path)
    assert json.loads(printed(popef_dump, "-m", path)) == reader.metadata()[0].values()
    everything = printed(popef_dump, "--all", path)
    assert f'{{"bytes": "{W.nbytes}", "least": "0.0", "most": "11.0"}}' in everything


def test_info_tells_anchors_space_and_whether_it_fits(path):
    text = printed(tilescope, "info", path)
    assert "runs here" in text and "main 5 Program" in text
    assert re.search(r"^fits +tiny yes: \d+\.\d % of 624\.0 kB for its fullest tile$", text, re.M)
    assert re.search(r"^x +input +f32 +2x3 +main", text, re.M)
    assert re.search(r"^w +input +f32 +3x4 +load +in the file", text, re.M)


def test_info_as_an_object_has_every_blob_and_machine(path):
    found = json.loads(printed(tilescope, "info", path, "--json"))
    assert sum(row["bytes"] for row in found["space"]) == path.stat().st_size
    assert found["blobs"]["dataTensor"] == 1 and len(found["anchors"]) == 4
    own, *others = found["fits"]
    assert own["machine"] == "tiny" and own["compiled"] and own["fits"]
    mk1 = next(fit for fit in others if fit["machine"] == "mk1")
    needed = int(found["executables"][0]["bytesNeeded"])
    assert mk1["share"] == needed / (256 << 10) and not mk1["compiled"]


@pytest.mark.parametrize("content", [None, b"", b"PK\3\4 something", "cut"])
@pytest.mark.parametrize("command", ["dump", "info"])
def test_a_file_that_is_no_popef_of_ours_is_one_line(command, content, path, tmp_path):
    file = tmp_path / "net.popef"
    if content is not None:
        file.write_bytes(path.read_bytes()[:900] if content == "cut" else content)
    chosen, before = {"dump": (popef_dump, []), "info": (tilescope, ["info"])}[command]
    result = CliRunner().invoke(chosen, [*before, str(file)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1 and str(file) in result.stderr
