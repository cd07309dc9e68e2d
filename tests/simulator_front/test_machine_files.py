"""Machines are files: those of the parts, and those that a user writes."""

from __future__ import annotations

from pathlib import Path

import pytest

import pva
from simulator.examples import matmul_chain
from simulator.graph.errors import PoplarError
from simulator.graph.machine.files import FOLDER, PROVENANCES, constants
from simulator.graph.machine.target import TARGETS, make_target, part_name, told_differences


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write the lines of a machine to a file; TARGETS are afterwards what they were."""
    monkeypatch.setattr("simulator.graph.machine.target.TARGETS", dict(TARGETS))

    def write(*lines: str) -> str:
        path = tmp_path / "mine.toml"
        path.write_text("\n".join(lines) + "\n")
        return str(path)

    return write


@pytest.mark.parametrize("part", ["mk1", "mk2", "bow", "tiny"])
def test_every_constant_of_a_part_has_its_source_and_provenance(part: str) -> None:
    told = {k: v for k, v in constants(FOLDER / f"{part}.toml").items() if v.source}
    plain = set(constants(FOLDER / f"{part}.toml")) - set(told)
    assert plain <= {"name", "like", "architecture"}
    assert {constant.provenance for constant in told.values()} <= set(PROVENANCES)


def test_two_numbers_change_a_machine_and_nothing_else(machine) -> None:
    path = machine('like = "mk2"', "tiles_per_ipu = 8", "bytes_per_tile = 700_000")
    target = make_target(path)
    assert (target.name, target.num_tiles, target.bytes_per_tile) == ("mine", 8, 700_000)
    assert len(target.relative_sync_delay) == 8
    assert target.getMaxIPUSyncDelay() == 126  # of an mk2
    assert told_differences(target) == (
        "tiles_per_ipu = 8 (mk2: 1,472); bytes_per_tile = 700,000 (mk2: 638,976)"
    )


def test_a_faster_exchange_makes_a_program_faster(machine, tmp_path: Path) -> None:
    path = machine('like = "mk2"', "exchange_bytes_per_cycle = 16")
    cycles = []
    for name, target in (("plain", "mk2"), ("fast", path)):
        matmul_chain.run(((64, 64), (64, 64)), target=target, out=tmp_path / name)
        report = pva.openReport(tmp_path / name)
        cycles.append(report.frames.steps()["cycles"].sum())
    assert cycles[1] < cycles[0]
    assert report.dataset.value("target", "machine") == "mine"
    assert report.dataset.value("target", "differences") == "exchange_bytes_per_cycle = 16 (mk2: 4)"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['like = "mk3"'], "like = 'mk3': no such machine; did you mean mk2"),
        (['like = "mk2"', "bytes_per_tyle = 1"], "no constant 'bytes_per_tyle'; did you mean by"),
        (['like = "mk2"', "bytes_per_tile = 0"], "bytes_per_tile is 0; a whole number from 1 to"),
        (['like = "mk2"', "bytes_per_tile = 16_383"], "memory_element_bytes is 16,384, more than"),
        (['like = "mk2"', "tiles_per_ipu = 2_000_000"], "a whole number from 1 to 1,048,576"),
        (['like = "mk2"', "max_sync_delay = 59"], "min_sync_delay is 60, more than max_sync_delay"),
        (['like = "mk2"', "link_bundles = [4, 2]"], r"link_bundles is \[4, 2\]; a list of 4"),
        (['like = "mk2"', "exchange_latency = [1, 2]"], "rising tiles, one for each of the 2"),
        (['like = "mk2"', "workers = { source = 'me' }"], "workers: no value"),
        (['like = "mk2"', "workers = { value = 6, provenance = 'me' }"], "there are exact, form"),
        (['name = "mk2"', 'like = "mk2"'], "that is a part's; choose another name"),
        (["bytes_per_tile = 1"], "no architecture; write it, or like"),
        (["bytes_per_tile"], "not TOML"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_in_a_line(machine, lines: list[str], message: str) -> None:
    with pytest.raises(PoplarError, match=message) as refused:
        part_name("--target", machine(*lines))
    assert "mine.toml" in str(refused.value)


def test_the_smallest_memory_is_that_of_one_element(machine) -> None:
    assert make_target(machine('like = "mk2"', "bytes_per_tile = 16_384")).interleaved_base == 16384
