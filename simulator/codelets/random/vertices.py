"""Vertices that draw random numbers; their cycles are in `random_cycles`.

A tile's generators are registers of its workers: vertices that come after one another draw on.
Vectors of a vertex's output go round the workers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np

from simulator.codelets.random import cycles as random_cycles
from simulator.codelets.random.philox import STATE_WORDS, Words, draw, seeded
from simulator.codelets.random.values import DISTRIBUTIONS, as_type, bernoulli
from simulator.codelets.vertex_type import VertexTypes, supervisor
from simulator.graph.geometry.intervals import spread
from simulator.graph.machine.target import Target
from simulator.graph.types import Array, IntArray, Type
from simulator.graph.vertices.vertex import Codelet, Operands, VertexGroup

_SOURCE = "PopLibs lib/poprand/poprandCycleEstimators.cpp"
TYPES = VertexTypes(
    (
        supervisor(
            "poprand::UniformSupervisor<type>", "out", random_cycles.uniform, _SOURCE, (20, 120)
        ),
        supervisor(
            "poprand::NormalSupervisor<type>", "out", random_cycles.normal, _SOURCE, (20, 120)
        ),
        supervisor(
            "poprand::TruncatedNormalSupervisor<type>",
            "out",
            random_cycles.truncated_normal,
            _SOURCE,
            (20, 160),
        ),
        supervisor(
            "poprand::BernoulliSupervisor<type>", "out", random_cycles.bernoulli, _SOURCE, (16, 110)
        ),
        supervisor(
            "poprand::DropoutSupervisor<type>", "in out", random_cycles.dropout, _SOURCE, (20, 120)
        ),
        supervisor(
            "poprand::SetSeedSupervisor, 2019",
            "seed",
            random_cycles.set_seed_2019,
            f"{_SOURCE} of 2019",
            (12, 28),
        ),
        supervisor("poprand::SetSeedSupervisor", "seed", random_cycles.set_seed, _SOURCE, (12, 28)),
        supervisor(
            "poplar_rt::GetHwSeeds",
            "seeds",
            random_cycles.hardware_seeds,
            "our estimate, as setting a seed",
            (8, 40),
            exact=False,
        ),
        supervisor(
            "poplar_rt::SetHwSeeds",
            "seeds",
            random_cycles.hardware_seeds,
            "our estimate, as setting a seed",
            (8, 40),
            exact=False,
        ),
    )
)

GENERATORS = "random generators"  # their name among the registers of a run: [tile, worker, word]
_AT_START = np.array([0x243F6A88, 0x85A308D3], dtype=np.uint32)  # the first bits of pi's fraction


def _generators(operands: Operands, target: Target) -> Words:
    """Return the states of the generators of the vertices' tiles [vertex, worker, word]."""
    registers, tiles = operands.registers, operands.group.tile
    generators = registers.get(GENERATORS, np.zeros((0, target.workers, STATE_WORDS), np.uint32))
    if tiles.max() >= len(generators):
        new = np.arange(len(generators), tiles.max() + 1)
        replica = np.full(len(new), registers["replica"])
        states = _of_workers(_AT_START, replica, new, target.workers)
        generators = registers[GENERATORS] = np.concatenate([generators, states])
    return np.asarray(generators[tiles])


def _keep(operands: Operands, states: Words) -> None:
    operands.registers[GENERATORS][operands.group.tile] = states


def _of_workers(seed: Words, modifier: IntArray, tiles: IntArray, workers: int) -> Words:
    """Return the states [tile, worker, word] to which a seed (for all or for each) leads."""
    colour = np.zeros((len(tiles), workers, 4), dtype=np.uint32)
    colour[:, :, 0] = modifier[:, None]
    colour[:, :, 1] = tiles[:, None]
    colour[:, :, 2] = np.arange(workers)
    return seeded(seed, colour.reshape(-1, 4)).reshape(colour.shape)


def words_of_elements(operands: Operands, target: Target, dtype: Type, word_count: int) -> Words:
    """Draw `word_count` words for every element of the outputs [word, element]."""
    if "place" not in operands.prepared:
        operands.prepared |= _plan(operands.counts["out"], target, dtype)
    counts, place = operands.prepared["counts"], operands.prepared["place"]
    states = _generators(operands, target)
    words, after = draw(states.reshape(-1, STATE_WORDS), counts * word_count)
    _keep(operands, after.reshape(states.shape))
    return np.asarray(words.reshape(-1, word_count)[place].T)


def _plan(elements: IntArray, target: Target, dtype: Type) -> dict[str, Array]:
    """Return how many numbers each worker draws, and the place of each element among them all."""
    vector, workers = max(target.getVectorWidth(dtype), 1), target.workers
    element = spread(np.zeros_like(elements), elements)
    worker = element // vector % workers
    owner = np.repeat(np.arange(len(elements)) * workers, elements) + worker
    counts = np.bincount(owner, minlength=len(elements) * workers)
    place = np.empty(len(element), dtype=np.int64)
    place[np.argsort(owner, kind="stable")] = np.arange(len(element))
    return {"counts": counts, "place": place}


def _common_parameters(group: VertexGroup) -> Mapping[str, float]:
    """Return the parameters, which all vertices of a call have alike."""
    return {name: float(values[0]) for name, values in group.parameters.items()}


@cache
def random_codelet(kind: str, dtype: Type, target: Target) -> Codelet:
    """Return the supervisor that writes numbers of a distribution to its field out."""
    distribution = DISTRIBUTIONS[kind]

    def compute(operands: Operands) -> dict[str, Array]:
        parameters = _common_parameters(operands.group)
        words = words_of_elements(operands, target, dtype, distribution.words(parameters))
        return {"out": as_type(distribution.values(words, parameters, dtype), dtype)}

    return TYPES.codelet(f"poprand::{kind}Supervisor<{dtype}>", compute)


@cache
def dropout_codelet(dtype: Type, target: Target) -> Codelet:
    """Return the supervisor that keeps `in` with probability `prob`, times `scale`, else 0."""

    def compute(operands: Operands) -> dict[str, Array]:
        parameters, values = _common_parameters(operands.group), operands.arrays["in"]
        mask = bernoulli(words_of_elements(operands, target, dtype, 1), parameters, dtype)
        scaled = values * dtype.numpy.type(parameters["scale"])
        return {"out": np.where(mask, scaled, dtype.numpy.type(0))}

    return TYPES.codelet(f"poprand::DropoutSupervisor<{dtype}>", compute)


@cache
def set_seed_codelet(target: Target) -> Codelet:
    """Return the supervisor that seeds its tile's generators from seed, modifier and tile."""

    def compute(operands: Operands) -> dict[str, Array]:
        _generators(operands, target)
        modifier, tiles = (operands.group.parameters[name] for name in ("modifier", "tile"))
        seeds = operands.arrays["seed"].reshape(-1, 2).repeat(target.workers, axis=0)
        _keep(operands, _of_workers(seeds, modifier, tiles, target.workers))
        return {}

    return TYPES.codelet("poprand::SetSeedSupervisor", compute)


@cache
def get_seeds_codelet(target: Target) -> Codelet:
    """Return the supervisor that writes the states of its tile's generators to `seeds`."""

    def compute(operands: Operands) -> dict[str, Array]:
        return {"seeds": _generators(operands, target).reshape(-1)}

    return TYPES.codelet("poplar_rt::GetHwSeeds", compute)


@cache
def set_seeds_codelet(target: Target) -> Codelet:
    """Return the supervisor that sets its tile's generators to the states in `seeds`."""

    def compute(operands: Operands) -> dict[str, Array]:
        states = _generators(operands, target)
        _keep(operands, operands.arrays["seeds"].reshape(states.shape))
        return {}

    return TYPES.codelet("poplar_rt::SetHwSeeds", compute)
