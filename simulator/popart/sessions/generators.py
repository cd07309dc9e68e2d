"""The generators of random numbers of a session: their seed, and their states."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.engine import Engine
from simulator.graph.types import Array
from simulator.popart import programs as parts
from simulator.popart.errors import popart_exception
from simulator.popart.logging import log
from simulator.popart.operators.elements.drawn import DRAWS
from simulator.popart.representation.ir import Ir
from simulator.popart.sessions.options import SessionOptions

OPTION = "enableLoadAndOffloadRNGState"


class Generators:
    """The part of a session that is about random numbers."""

    _ir: Ir
    _options: SessionOptions
    _programs: parts.Programs
    _seed = 0
    _first_states: Sequence[int] = ()  # of a file that was loaded

    def _loaded(self, caller: str) -> Engine:
        raise NotImplementedError

    def _begin_generators(self) -> None:
        """Set the generators to the seed, and the states, of this session or of the file it took.

        Without either the seed is 0, so that who runs an exported file draws the same numbers.
        """
        if parts.SEED_FROM_HOST in self._programs.programs:
            self.setRandomSeed(self._seed)
        if self._first_states:
            self.setRNGState(self._first_states)

    def setRandomSeed(self, seed: int) -> None:
        """Seed the generators of all tiles, where the model draws random numbers.

        Each replica has a seed of its own, as many above this one as its number. In PopART a
        model that draws none may be seeded before `prepareDevice`, too.

        >>> from simulator import popart
        >>> from simulator.popart import trial
        >>> session, y = trial.random()
        >>> session.prepareDevice()
        >>> def draw():
        ...     anchors = session.initAnchorArrays()
        ...     session.run(popart.PyStepIO({}, anchors))
        ...     return anchors[y].tolist()
        >>> session.setRandomSeed(7)
        >>> first = draw()
        >>> session.setRandomSeed(7)
        >>> draw() == first
        True
        """
        draws = any(node.operator in DRAWS for node in self._ir.nodes)
        if not draws:
            log("session", "WARN", "setRandomSeed: this session has no random behaviour")
        engine = self._loaded("setRandomSeed") if draws else None
        if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 1 << 64:
            raise popart_exception(f"setRandomSeed: {seed!r}; a whole number of 64 bits is needed")
        self._seed = seed
        if engine is not None and parts.SEED_FROM_HOST in self._programs.programs:
            first = self._options.globalReplicaOffset
            replicas = np.arange(first, first + self._options.replicas, dtype=np.uint64)
            words = (np.uint64(seed) + replicas).view(np.uint32)  # the low word of each first
            engine.connectStream(parts.SEED_FROM_HOST, words)
            self._programs.run_apart(engine, parts.SEED_FROM_HOST)

    def getRandomSeed(self) -> int:
        """Return the seed that was set last, 0 before.

        >>> from simulator.popart import trial
        >>> session, y = trial.random()
        >>> session.prepareDevice()
        >>> session.setRandomSeed(7)
        >>> session.getRandomSeed()
        7
        """
        return self._seed

    def getRNGState(self) -> list[int]:
        """Return four words for each worker of each tile; none where no random number is drawn.

        Raises popart_exception unless enableLoadAndOffloadRNGState is set.

        >>> from simulator.popart import trial
        >>> session, y = trial.random(enableLoadAndOffloadRNGState=True)
        >>> session.prepareDevice()
        >>> len(session.getRNGState())  # 4 tiles of 6 workers
        96
        """
        words = self._states("getRNGState")
        if len(words):
            engine = self._loaded("getRNGState")
            engine.connectStream(parts.RNG_TO_HOST, words)
            self._programs.run_apart(engine, parts.RNG_TO_HOST)
        return [int(word) for word in words]

    def setRNGState(self, state: Sequence[int]) -> None:
        """Set the generators to a state of getRNGState; raises popart_exception for any other.

        >>> from simulator import popart
        >>> from simulator.popart import trial
        >>> session, y = trial.random(enableLoadAndOffloadRNGState=True)
        >>> session.prepareDevice()
        >>> def draw():
        ...     anchors = session.initAnchorArrays()
        ...     session.run(popart.PyStepIO({}, anchors))
        ...     return anchors[y].tolist()
        >>> state = session.getRNGState()
        >>> first = draw()
        >>> session.setRNGState(state)
        >>> draw() == first
        True
        """
        words = self._states("setRNGState")
        if len(state) != len(words):
            raise popart_exception(
                f"setRNGState: {len(state)} words; the generators of this device have {len(words)}"
            )
        if len(words):
            engine = self._loaded("setRNGState")
            words[:] = state
            engine.connectStream(parts.RNG_FROM_HOST, words)
            self._programs.run_apart(engine, parts.RNG_FROM_HOST)

    def _states(self, call: str) -> Array:
        """Return room for the words of all generators, of all replicas."""
        self._loaded(call)
        if not getattr(self._options, OPTION):
            raise popart_exception(f"{call}: states stay on the device; set {OPTION}")
        return np.zeros(self._programs.words * self._options.replicas, dtype=np.uint32)
