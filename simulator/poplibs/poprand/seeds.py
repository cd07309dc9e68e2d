"""The generators of the tiles' workers: seeding them, and keeping their states.

What draws with a master seed saves the states, seeds the generators, draws, and puts the states
back: so its numbers do not depend on what ran before, and nothing after it depends on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from simulator.codelets.random import cycles as random_cycles
from simulator.codelets.random.philox import STATE_WORDS
from simulator.codelets.random.vertices import (
    get_seeds_codelet,
    set_seed_codelet,
    set_seeds_codelet,
)
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.machine.target import Target
from simulator.graph.program import Execute, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import UNSIGNED_INT, Array, IntArray
from simulator.graph.vertices.vertex import Codelet, Field, VertexGroup, cut_field
from simulator.logging import library_call
from simulator.poplibs.popops.regions import debug_name

MAX_MODIFIED = 1 << 32


@library_call("POPRAND")
def setSeed(
    graph: Graph, masterSeed: Tensor, seedModifier: int, prog: Sequence, debugContext: str = ""
) -> None:
    """Seed the generators of all tiles from a tensor of two unsigned ints and a number.

    >>> from simulator import poplar, poprand
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> seed, like = trial.tensor([7, 0], poplar.UNSIGNED_INT), trial.tensor([0.0] * 4)
    >>> operands = None, 0, like, poplar.FLOAT, 0.0, 1.0, trial.prog
    >>> def draw():
    ...     poprand.setSeed(trial.graph, seed, 1, trial.prog)
    ...     return poprand.uniform(trial.graph, *operands)
    >>> first, again = trial.values(draw(), draw())
    >>> first == again
    True
    """
    _set_seed(graph, masterSeed, seedModifier, prog, debug_name(debugContext, "setMasterSeed"))


@library_call("POPRAND")
def getHwSeeds(graph: Graph, prog: Sequence, debugContext: str = "") -> Tensor:
    """Return the states of all generators, four unsigned ints for each worker [tile, worker, 4].

    >>> from simulator import poprand
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> poprand.getHwSeeds(trial.graph, trial.prog).shape  # 4 tiles of 6 workers
    (4, 6, 4)
    """
    return _get_states(graph, prog, debug_name(debugContext, "getHwSeeds"))


@library_call("POPRAND")
def setHwSeeds(graph: Graph, hwSeeds: Tensor, prog: Sequence, debugContext: str = "") -> None:
    """Set all generators to states that `getHwSeeds` gave.

    >>> from simulator import poplar, poprand
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> like, states = trial.tensor([0.0] * 4), poprand.getHwSeeds(trial.graph, trial.prog)
    >>> operands = None, 0, like, poplar.FLOAT, 0.0, 1.0, trial.prog
    >>> first = poprand.uniform(trial.graph, *operands)
    >>> poprand.setHwSeeds(trial.graph, states, trial.prog)
    >>> first, again = trial.values(first, poprand.uniform(trial.graph, *operands))
    >>> first == again
    True
    """
    _set_states(graph, hwSeeds, prog, debug_name(debugContext, "setHwSeeds"))


@contextmanager
def seeded(
    graph: Graph, master_seed: Tensor | None, modifier: int, prog: Sequence, name: str
) -> Iterator[None]:
    """Seed the generators for what is added inside, when there is a master seed."""
    if master_seed is None:
        _check_modifier(modifier, name)
        yield
        return
    _check_seed(master_seed, modifier, name)
    states = _get_states(graph, prog, f"{name}/getHwSeeds")
    _set_seed(graph, master_seed, modifier, prog, f"{name}/setMasterSeed")
    yield
    _set_states(graph, states, prog, f"{name}/setHwSeeds")


def _check_seed(seed: Tensor, modifier: int, name: str) -> None:
    if seed.shape != (2,) or seed.dtype != UNSIGNED_INT:
        raise poplibs_error(f"{name}: seed is {seed!r}; two unsigned ints are needed")
    _check_modifier(modifier, name)


def _check_modifier(modifier: int, name: str) -> None:
    if not isinstance(modifier, int | np.integer) or not 0 <= modifier < MAX_MODIFIED:
        raise poplibs_error(f"{name}: seed modifier is {modifier!r}; needs one of 32 bits")


def _set_seed(graph: Graph, seed: Tensor, modifier: int, prog: Sequence, name: str) -> None:
    _check_seed(seed, modifier, name)
    tiles = np.arange(graph.target.num_tiles, dtype=np.int64)
    zeros = np.zeros_like(tiles)
    parameters = {"modifier": zeros + modifier, "tile": tiles}
    field = cut_field("seed", "input", seed, zeros, zeros + 2)
    codelet, cycles = set_seed_codelet(graph.target), random_cycles.set_seed_2019
    _add_to_all_tiles(graph, codelet, cycles, field, prog, name, parameters)


def _get_states(graph: Graph, prog: Sequence, name: str) -> Tensor:
    target = graph.target
    states = graph.addVariable(UNSIGNED_INT, _shape(graph), f"{name}/hwSeeds")
    low, high = _bounds(graph)
    graph.map_ranges(states, low, high, np.arange(target.num_tiles, dtype=np.int64))
    field = cut_field("seeds", "output", states, low, high)
    _add_to_all_tiles(
        graph, get_seeds_codelet(target), random_cycles.hardware_seeds, field, prog, name, {}
    )
    return states


def _set_states(graph: Graph, states: Tensor, prog: Sequence, name: str) -> None:
    if states.shape != _shape(graph) or states.dtype != UNSIGNED_INT:
        shape = list(_shape(graph))
        raise poplibs_error(f"{name}: states are {states!r}; needs unsigned int{shape}")
    field = cut_field("seeds", "input", states, *_bounds(graph))
    _add_to_all_tiles(
        graph, set_seeds_codelet(graph.target), random_cycles.hardware_seeds, field, prog, name, {}
    )


def _shape(graph: Graph) -> tuple[int, int, int]:
    return graph.target.num_tiles, graph.target.workers, STATE_WORDS


def _bounds(graph: Graph) -> tuple[IntArray, IntArray]:
    """Return the first and last element (not included) of each tile's states."""
    tiles, workers, words = _shape(graph)
    first = np.arange(tiles, dtype=np.int64) * workers * words
    return first, first + workers * words


def _add_to_all_tiles(
    graph: Graph,
    codelet: Codelet,
    cycles: Callable[[IntArray, Target], IntArray],
    field: Field,
    prog: Sequence,
    name: str,
    parameters: dict[str, Array],
) -> None:
    """Add a supervisor to every tile."""
    tiles = np.arange(graph.target.num_tiles, dtype=np.int64)
    with graph.debug_scope(name, "poprand"):
        compute_set = graph.addComputeSet(name)
        cost = cycles(tiles, graph.target)
        graph.add_vertices(
            VertexGroup(compute_set.id, codelet, tiles, {field.name: field}, parameters, cost)
        )
        prog.add(Execute(compute_set))
