"""The files of a session: its executable and its variables, written and read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from types import MappingProxyType

import numpy as np

from pva.errors import PvaError
from simulator.engine import Engine
from simulator.executable import Executable
from simulator.graph.types import Array
from simulator.popart import programs as parts
from simulator.popart.errors import popart_exception
from simulator.popart.logging import log
from simulator.popart.representation.ir import Ir
from simulator.popart.sessions.exported import (
    RNG_STATE,
    SEED,
    Exported,
    programs_of,
    state_of,
    write_session,
    write_weights,
)
from simulator.popart.sessions.options import SessionOptions
from simulator.popart.settings.dataflow import DataFlow
from simulator.popart.settings.devices import DeviceInfo
from simulator.popef.cache import cached
from simulator.popef.engine_model import write_tensors
from simulator.popef.model import Model, load_model
from simulator.popef.program import name_of
from simulator.popef.writer import FileWriter

EXECUTABLE, VARIABLES = "executable.popef", "variables.popef"
Path_ = str | PathLike[str]


class Files:
    """The methods of a session that keep it in PopEF files."""

    training: bool
    _device: DeviceInfo
    _engine: Engine | None
    _executable: Executable | None = None
    _flow: DataFlow
    _in_flight: int
    _ir: Ir
    _options: SessionOptions
    _programs: parts.Programs
    _first_states: Sequence[int]
    _seed: int
    _streams: Mapping[str, str] = MappingProxyType(
        {}
    )  # optimiser's number that may change -> handle
    _weights: dict[str, Array | None]
    _what: str

    def _fingerprint(self) -> str:
        raise NotImplementedError

    def _compile(self) -> None:
        raise NotImplementedError

    def getRNGState(self) -> list[int]:
        raise NotImplementedError

    def _kept_rows(self) -> Mapping[str, Sequence[object]]:
        """Return what an optimiser keeps: nothing without training."""
        return {}

    def _keep_rows(self, rows: Mapping[str, Sequence[object]]) -> None:
        """Take what an optimiser keeps from a file."""

    def _more_tensors(self) -> dict[str, Array]:
        """Return what else than weights the programs that load need: the seed."""
        return self._seed_tensors()

    def _seed_tensors(self) -> dict[str, Array]:
        """Return the words of the seed, and the states of the generators once there is an engine.

        None of what the model does not have.
        """
        tensors: dict[str, Array] = {}
        if parts.SEED_FROM_HOST in self._programs.programs:
            tensors[SEED] = np.array([self._seed & 0xFFFFFFFF, self._seed >> 32], dtype=np.uint32)
        if parts.RNG_FROM_HOST in self._programs.programs and self._engine is not None:
            copies = self._options.replicas
            shape = (copies, -1) if copies > 1 else (-1,)
            tensors[RNG_STATE] = np.array(self.getRNGState(), dtype=np.uint32).reshape(shape)
        return tensors

    # Writing
    def compileAndExport(self, path: Path_) -> None:
        """Compile the model, without a device, and write executable and weights to a PopEF file.

        In a folder that is there it is `executable.popef`.

        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from simulator.popart import trial
        >>> session, x, y = trial.inference()
        >>> with TemporaryDirectory() as folder:
        ...     session.compileAndExport(folder)
        ...     [path.name for path in Path(folder).iterdir()]
        ['executable.popef']
        """
        if self._executable is None:
            self._from_cache()
        if self._executable is None:
            self._compile()
        self.saveExecutable(path)

    def saveExecutable(
        self,
        path: Path_,
        savePopartMetadata: bool = True,
        saveVariables: bool = True,
        *,
        compress: bool = False,
    ) -> None:
        """Write the compiled model to a PopEF file, with the weights or without.

        What a session needs to load it again is always there, whatever `savePopartMetadata` says.

        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from simulator.popart import trial
        >>> session, x, y = trial.inference()
        >>> session.prepareDevice()
        >>> with TemporaryDirectory() as folder:
        ...     session.saveExecutable(folder)
        ...     [path.name for path in Path(folder).iterdir()]
        ['executable.popef']
        """
        if self._executable is None:
            raise popart_exception("saveExecutable: call prepareDevice or compileAndExport first")
        with FileWriter(_new_place(path, EXECUTABLE)) as writer:
            self._write_executable(writer, compress)
            if saveVariables:
                self._write_variables(writer)

    def saveVariables(self, path: Path_) -> None:
        """Write the weights, and what an optimiser keeps, to a PopEF file of their own.

        In a folder that is there it is `variables.popef`. They are those of the model, of
        `weightsToHost` once that was called.

        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from simulator.popart import trial
        >>> session, x, w, y = trial.weighted()
        >>> with TemporaryDirectory() as folder:
        ...     session.saveVariables(folder)
        ...     [path.name for path in Path(folder).iterdir()]
        ['variables.popef']
        """
        with FileWriter(_new_place(path, VARIABLES)) as writer:
            self._write_variables(writer)

    def _write_variables(self, writer: FileWriter) -> None:
        write_weights(writer, self._weights, self._ir.infos)
        write_tensors(writer, self._more_tensors())

    def _write_executable(self, writer: FileWriter, compress: bool = False) -> None:
        assert self._executable is not None
        exported = Exported(
            self._ir.infos, self._programs, self._streams, self._kept_rows(), self.training,
            self._options.replicas, self._options.total_replicas // self._options.replicas,
            self._flow.batchesPerStep() * self._options.factor, self._in_flight,
            states=self._engine is not None,
        )  # fmt: skip
        name = name_of(self._fingerprint())
        write_session(writer, name, self._executable, exported, compress)

    def _write_cached(self, writer: FileWriter) -> None:
        """Write the compiled model with what reports of it begin with."""
        from simulator.profile.stored import with_profile

        assert self._executable is not None
        self._executable = with_profile(self._executable, self._options.engineOptions)
        self._write_executable(writer)

    # Reading
    def _from_cache(self) -> None:
        """Take the compiled model from the folder of such, or compile and keep it there.

        Nothing is done where no folder is wanted.
        """
        folder = self._options.cache
        if folder is not None:
            digest = self._fingerprint()
            take = partial(self._take, digest=digest)
            cached(folder, digest, take, self._compile, self._write_cached)

    def loadExecutable(self, path: Path_, *more: Path_) -> None:
        """Take the compiled model from a PopEF file: `prepareDevice` then loads it.

        The session must be of the same model, options and machine. Weights that the file or one of
        `more` has are taken, too, and so are the seed and the states of generators: the session
        draws the numbers that the one that wrote them would draw next. Raises popart_exception and
        PvaError.

        >>> from tempfile import TemporaryDirectory
        >>> import numpy as np
        >>> from simulator import popart
        >>> from simulator.popart import trial
        >>> session, x, y = trial.inference()
        >>> again, _, _ = trial.inference()
        >>> with TemporaryDirectory() as folder:
        ...     session.compileAndExport(folder)
        ...     again.loadExecutable(folder)
        >>> again.prepareDevice()  # without compiling
        >>> anchors = again.initAnchorArrays()
        >>> again.run(popart.PyStepIO({x: np.float32([-1.0, 2.0])}, anchors))
        >>> anchors[y].tolist()
        [0.0, 2.0]
        """
        paths = [_place(path, EXECUTABLE), *(_place(one, VARIABLES) for one in more)]
        self._take(load_model(paths), self._fingerprint())

    def _take(self, model: Model, digest: str) -> None:
        name, expected = model.executable.name, name_of(digest)
        if name != expected:
            raise popart_exception(
                f"loadExecutable: {model.executable.blob.source.path}: executable {name} is of "
                f"another model, other options or another machine than {self._what}, {expected}"
            )
        executable, state = model.executable.load(), state_of(model)
        programs = programs_of(executable, state)
        try:
            self._keep_rows(state["kept"])
            self._streams, self._in_flight = dict(state["optimizer"]), int(state["inFlight"])
        except (KeyError, TypeError, ValueError) as error:
            path = model.executable.blob.source.path
            raise PvaError(path, f"its state of a session: {error}", "compile it anew") from None
        place = model.executable.blob.source.path
        log("devicex", "DEBUG", f"Loading serialized PopART executable from {place}")
        self._executable, self._programs = executable, programs
        own_names = set(self._streams)  # which this session has of its own
        for tensor in model.tensors:
            if tensor.info.name() == SEED:
                low, high = (int(word) for word in tensor.data())
                self._seed = low | high << 32
            elif tensor.info.name() == RNG_STATE:
                self._first_states = tensor.data().ravel().tolist()
            elif tensor.info.name() not in own_names:
                self._take_weight(str(tensor.info.name()), tensor.data())

    def _take_weight(self, name: str, values: Array) -> None:
        info = self._ir.infos.get(name)
        if info is None or name not in self._weights or info.dims != values.shape:
            raise popart_exception(f"loadExecutable: {name!r} is no weight of {list(values.shape)}")
        self._weights[name] = values.astype(info.host)


def _place(path: Path_, name: str) -> Path:
    """Return a path, or that of a file of a name in the folder that it is."""
    place = Path(fspath(path))
    return place / name if place.is_dir() else place


def _new_place(path: Path_, name: str) -> Path:
    """Do what `_place` does for a file to be written; its folder is made."""
    place = _place(path, name)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise popart_exception(f"{place.parent}: {error.strerror}") from None
    return place
