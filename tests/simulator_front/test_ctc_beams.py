"""Beam search: the texts and probabilities of a search over dictionaries, and of all paths."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from device_program import DeviceProgram
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator import popnn
from simulator.codelets.layers import ctc_beams
from simulator.graph.errors import InvalidOptionError, poplibs_error
from simulator.graph.machine.target import make_target
from simulator.graph.types import FLOAT, HALF, INT, UNSIGNED_INT

MK2 = make_target("mk2")


def log_probs(seed: int, *shape: int) -> Any:
    values = np.random.default_rng(seed).normal(size=shape) * 2
    return values - np.log(np.exp(values).sum(-1, keepdims=True))


def searched(probs: Any, blank: int, beams: int) -> list[tuple[tuple[int, ...], float]]:
    """Search by a dictionary of texts, with the probabilities that one ends in a blank or not."""
    kept = {(): (0.0, 1.0)}
    for row in np.exp(probs):
        found: dict[tuple[int, ...], list[float]] = {}
        for text, (symbol_end, blank_end) in kept.items():
            for symbol, prob in enumerate(row.tolist()):
                total = symbol_end + blank_end
                if symbol == blank:
                    found.setdefault(text, [0, 0])[1] += total * prob
                elif text and text[-1] == symbol:
                    found.setdefault(text, [0, 0])[0] += symbol_end * prob
                    found.setdefault((*text, symbol), [0, 0])[0] += blank_end * prob
                else:
                    found.setdefault((*text, symbol), [0, 0])[0] += total * prob
        best = sorted(found.items(), key=lambda item: -sum(item[1]))[:beams]
        kept = {text: (ends[0], ends[1]) for text, ends in best}
    return [(text, float(np.log(sum(ends)))) for text, ends in kept.items()]


def decode(probs: Any, lengths: list[int], blank: int, beams: int, paths: int, **more: Any) -> Any:
    run = DeviceProgram(tiles=more.pop("tiles", 8))
    report, dtype = more.pop("report", None), more.pop("dtype", FLOAT)
    time, batch, classes = probs.shape
    plan = popnn.ctc_infer.plan(run.graph, dtype, batch, time, classes, beams, more)
    data = popnn.ctc_infer.createDataInput(run.graph, dtype, batch, time, classes, plan)
    run.give(data, probs)
    steps = run.tensor(lengths, UNSIGNED_INT)
    outs = popnn.ctc_infer.beamSearchDecoderLogProbabilities(
        run.graph, data, steps, run.program, blank, beams, paths, plan
    )
    return run.run(*outs, report=report)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_texts_are_those_of_a_search_over_dictionaries(data: st.DataObject) -> None:
    time, batch = data.draw(st.integers(2, 6)), data.draw(st.integers(1, 3))
    classes, beams = data.draw(st.integers(3, 6)), data.draw(st.integers(1, 4))
    blank = data.draw(st.integers(0, classes - 1))
    lengths = [data.draw(st.integers(1, time)) for _ in range(batch)]
    probs = log_probs(data.draw(st.integers(0, 99)), time, batch, classes)
    paths = data.draw(st.integers(1, beams))
    totals, sizes, texts = decode(probs, lengths, blank, beams, paths)
    for sample, steps in enumerate(lengths):
        wanted = searched(probs[:steps, sample].astype(np.float32), blank, beams)[:paths]
        for path, (text, prob) in enumerate(wanted):
            found = texts[sample, path, : sizes[sample, path]].tolist()
            assert totals[sample, path] == pytest.approx(prob, abs=1e-4)
            others = [other for other, p in wanted if abs(p - prob) < 1e-4]
            assert tuple(found) in others or tuple(found) == text


def test_with_beams_enough_the_best_text_is_that_of_all_paths(tmp_path: Any) -> None:
    probs = log_probs(5, 4, 1, 3)
    sums: dict[tuple[int, ...], float] = {}
    for path in product(range(3), repeat=4):
        kept = [s for i, s in enumerate(path) if i == 0 or s != path[i - 1]]
        text = tuple(symbol for symbol in kept if symbol != 2)
        sums[text] = sums.get(text, 0) + float(
            np.exp(sum(probs[i, 0, s] for i, s in enumerate(path)))
        )
    best = max(sums, key=lambda text: sums[text])
    totals, sizes, texts = decode(probs, [4], 2, 20, 1, report=tmp_path / "report")
    assert tuple(texts[0, 0, : sizes[0, 0]].tolist()) == best
    assert totals[0, 0] == pytest.approx(np.log(sums[best]), abs=1e-5)


@pytest.mark.parametrize("groups", ["", "3,1", "1"])
def test_stages_and_tiles_change_no_text(groups: str) -> None:
    probs = log_probs(6, 5, 2, 24)
    more = {"sortStageGroups": groups} if groups else {}
    totals, sizes, texts = decode(probs, [5, 3], 0, 3, 2, tiles=48, **more)
    for sample, steps in enumerate((5, 3)):
        for path, (text, prob) in enumerate(searched(probs[:steps, sample], 0, 3)[:2]):
            assert tuple(texts[sample, path, : sizes[sample, path]].tolist()) == text
            assert totals[sample, path] == pytest.approx(prob, abs=1e-4)


def test_logits_are_made_log_probabilities_and_halves_are_taken() -> None:
    run, logits = DeviceProgram(), np.random.default_rng(8).normal(size=(4, 1, 3)) * 3
    plan = popnn.ctc_infer.plan(run.graph, HALF, 1, 4, 3, 2)
    data = run.tensor(logits, HALF)
    totals, sizes, texts = run.run(
        *popnn.ctc_infer.beamSearchDecoderLogits(
            run.graph, data, run.tensor([4], UNSIGNED_INT), run.program, 0, 2, 1, plan
        )
    )
    probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    ((text, prob), *_) = searched(probs[:, 0], 0, 2)
    assert tuple(texts[0, 0, : sizes[0, 0]].tolist()) == text
    assert totals.dtype == np.float16 and totals[0, 0] == pytest.approx(prob, abs=0.02)


def test_a_plan_is_that_of_poplibs() -> None:
    graph = DeviceProgram(tiles=120).graph
    plan = popnn.ctc_infer.plan(graph, FLOAT, 4, 10, 37, 5)
    # 30 tiles a sample; 36 symbols 2 a tile; two stages of 6 and 1 groups: 185 candidates, 31 a
    # group of 5 tiles, 7 a tile; 30 in the last, 6 a tile
    assert (plan.batch, plan.tilesPerBatchEntry, plan.extend, plan.copy) == (4, 30, 18, 5)
    assert [(s.groups, s.rankPartitions, s.reducePartitions) for s in plan.sort] == [
        (6, 5, 5),
        (1, 5, 5),
    ]
    assert len(popnn.ctc_infer.plan(graph, FLOAT, 4, 10, 19, 5).sort) == 1


def test_cycles_of_sorting_are_poplibs() -> None:
    # 30 ranked by 6 workers, 5 each; 185 candidates are 92 pairs
    cycles = ctc_beams.rank_candidates(np.array([30]), np.array([185]), 5, MK2)
    assert cycles == 14 + 11 * 5 + 8 + 6 * (13 + 5 * 28 + 5 * 3 * 92 + 15)
    assert ctc_beams.reduce_candidates(np.array([7]), MK2) == 36 + 6 * (13 + 3 + 6)
    assert ctc_beams.update_beams(np.array([5]), MK2) == 28 + 6 * (16 + 35 + 1)


def test_what_cannot_be_decoded_is_refused() -> None:
    run = DeviceProgram()
    plan = popnn.ctc_infer.plan(run.graph, FLOAT, 1, 4, 3, 2)
    data, steps = run.tensor(np.zeros((4, 1, 3))), run.tensor([4], UNSIGNED_INT)
    call = popnn.ctc_infer.beamSearchDecoderLogProbabilities
    with pytest.raises(poplibs_error, match="beam width 2, 3 paths, blank class 0; the plan has 2"):
        call(run.graph, data, steps, run.program, 0, 2, 3, plan)
    with pytest.raises(poplibs_error, match=r"the plan is for \[4, 1, 3\] of float or half"):
        call(run.graph, run.tensor(np.zeros((4, 1, 3)), INT), steps, run.program, 0, 2, 1, plan)
    with pytest.raises(poplibs_error, match="1 classes, beam width 2; at least 1"):
        popnn.ctc_infer.plan(run.graph, FLOAT, 1, 4, 1, 2)
    with pytest.raises(poplibs_error, match="sortStageGroups is '2'; a list that ends in 1"):
        popnn.ctc_infer.plan(run.graph, FLOAT, 1, 4, 3, 2, {"sortStageGroups": "2"})
    with pytest.raises(InvalidOptionError, match="no option 'partialType'; did you mean partials"):
        popnn.ctc_infer.plan(run.graph, FLOAT, 1, 4, 3, 2, {"partialType": "half"})
