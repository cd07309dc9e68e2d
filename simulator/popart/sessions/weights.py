"""The weights of a session: to the device and back, to arrays and to files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import onnx

from simulator.engine import Engine
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import Array
from simulator.instances.placement import Placement, placement
from simulator.instances.share import Place, Share
from simulator.popart import programs as parts
from simulator.popart.errors import popart_exception
from simulator.popart.importing.model_files.external_data import relocate
from simulator.popart.importing.model_files.model_file import (
    Model,
    read_model,
    tensor_values,
    weights_of,
    write_model,
)
from simulator.popart.programs import Programs
from simulator.popart.representation.ir import Ir
from simulator.popart.representation.tensor_info import to_device
from simulator.popart.sessions.options import SessionOptions
from simulator.popart.variable_settings import VariableSettings, settings_of
from simulator.runtime.arrangement import arranged, restored


@dataclass(slots=True)
class PyWeightsIO:
    """Arrays of weights by name, to be filled or to be taken from.

    >>> PyWeightsIO({"w": np.zeros(2)}).weights["w"].tolist()
    [0.0, 0.0]
    """

    weights: Mapping[str, Array]


class Weights:
    """The methods of a session that move weights, with what an optimiser keeps of them."""

    training: bool
    _ir: Ir
    _model: onnx.ModelProto | None
    _options: SessionOptions
    _programs: Programs
    _values: bool
    _uploaded: bool
    _weights: dict[str, Array | None]
    _kept: dict[str, Tensor]  # what an optimiser keeps between batches
    _shared: dict[str, VariableSettings]  # weights of groups of replicas

    def _share_among_groups(self, folder: Path | None) -> None:
        """Take the weights of all groups of replicas, where there are several."""
        tensors = {} if self._model is None else {t.name: t for t in self._model.graph.initializer}
        found = settings_of(tensors.values())
        self._shared = {name: one for name, one in found.items() if name in self._weights}
        for name, settings in self._shared.items():
            if settings.getGroupCount(self._options.total_replicas) > 1 and self._values:
                subject = f"initialiser {name!r}"
                self._weights[name] = tensor_values(tensors[name], folder, subject)

    def _shapes(self, name: str) -> list[tuple[int, ...]]:
        """Return the shapes that the host may have of a weight."""
        dims, replicas = self._ir.infos[name].dims, self._options.total_replicas
        if name not in self._shared:
            return [dims]
        settings = self._shared[name]
        read = settings.numReplicasReturningVariable(replicas)
        on_host = tuple(settings.shapeOnHost(dims, replicas))
        return [on_host, (read, *dims)] if read > 1 else [on_host]

    def _loaded(self, caller: str) -> Engine:
        raise NotImplementedError

    def broadcastWeights(self, rootRank: int = 0) -> None:
        """Send the weights that one instance has on the host to all that `poprun` started.

        Raises popart_exception for an instance that is not there, and for weights without values.

        >>> import numpy as np
        >>> from simulator import popart
        >>> from simulator.popart import trial
        >>> session, x, w, y = trial.weighted()
        >>> session.prepareDevice()
        >>> session.broadcastWeights(0)  # of the only instance
        >>> weights = {w: np.zeros(2, np.float32)}
        >>> session.readWeights(popart.PyWeightsIO(weights))
        >>> weights[w].tolist()
        [3.0, 4.0]
        """
        place = placement() or Placement()
        if not 0 <= rootRank < place.instances:
            raise popart_exception(
                f"broadcastWeights: rootRank is {rootRank}; 0 to {place.instances - 1} are there"
            )
        others = [other for other in range(place.instances) if other != rootRank]
        share = Share(place.instance, 1)
        for number, (name, values) in enumerate(self._weights.items() if others else (), 1):
            if values is None:
                raise popart_exception(f"broadcastWeights: weight {name!r} has no values")
            copy = Place(0, "broadcastWeights", number, name)
            for other in others:
                received = share.exchange(copy, {rootRank: other}, [values.reshape(-1)])
                if place.instance in received:
                    self._weights[name] = received[place.instance].reshape(values.shape)

    def weightsFromHost(self) -> None:
        """Copy the weights to the device.

        >>> import numpy as np
        >>> from simulator import popart
        >>> from simulator.popart import trial
        >>> session, x, w, y = trial.weighted()
        >>> session.prepareDevice()
        >>> session.weightsFromHost()
        >>> anchors = session.initAnchorArrays()
        >>> session.run(popart.PyStepIO({x: np.float32([10.0, 10.0])}, anchors))
        >>> anchors[y].tolist()
        [30.0, 40.0]
        """
        self._upload()

    def hand_over_weights(self) -> None:
        """Copy the weights to the device for good: the host gives back each that is copied.

        Another `weightsFromHost` then refuses.

        >>> import numpy as np
        >>> from simulator import popart
        >>> from simulator.popart import trial
        >>> session, x, w, y = trial.weighted()
        >>> session.prepareDevice()
        >>> session.hand_over_weights()
        >>> anchors = session.initAnchorArrays()
        >>> session.run(popart.PyStepIO({x: np.float32([10.0, 10.0])}, anchors))
        >>> anchors[y].tolist()
        [30.0, 40.0]
        """
        self._upload(for_good=self._options.replicas == 1)
        self._let_go_of_weights()

    def _upload(self, *, for_good: bool = False) -> None:
        engine = self._loaded("weightsFromHost")
        uploads: dict[str, Array] = {}
        for name, handle in self._programs.weights_in.items():
            if self._values:
                values = self._weights[name]
                if values is None:
                    raise popart_exception(f"weightsFromHost: weight {name!r} has no values")
                info = self._ir.infos[name]
                tensor = self._programs.weights[name]
                if name in self._shared:
                    self._upload_of_groups(engine, handle, name, values)
                    continue
                uploads[name] = flat(to_device(values, info, f"weight {name!r}"))
                take = partial(uploads.pop if for_good else uploads.__getitem__, name)
                upload = partial(_fill, tensor=tensor, take=take)
                engine.connectStreamToCallback(handle, upload)
        if for_good:
            self._let_go_of_weights()
        if self._programs.weights_in:
            self._programs.run_apart(engine, parts.WEIGHTS_FROM_HOST)
        uploads.clear()  # the streams stay connected
        self._uploaded = True

    def _upload_of_groups(self, engine: Engine, handle: str, name: str, values: Array) -> None:
        """Connect the stream of a weight of groups, for each replica."""
        info, options = self._ir.infos[name], self._options
        every = self._shared[name].of_replicas(values, info.dims, options.total_replicas)
        mine = every[options.globalReplicaOffset :][: options.replicas]
        for replica, one in enumerate(mine):
            typed = flat(to_device(np.asarray(one), info, f"weight {name!r}"))
            upload = partial(_fill, tensor=self._programs.weights[name], take=partial(_same, typed))
            engine.connectStreamToCallback(handle, replica, upload)

    def weightsToHost(self) -> None:
        """Copy the weights from the device; `readWeights` and `modelToHost` give them.

        >>> import numpy as np
        >>> from simulator import popart
        >>> from simulator.popart import trial
        >>> session, x, w, y = trial.weighted()
        >>> session.prepareDevice()
        >>> session.weightsFromHost()
        >>> session.weightsToHost()
        >>> weights = {w: np.zeros(2, np.float32)}
        >>> session.readWeights(popart.PyWeightsIO(weights))
        >>> weights[w].tolist()
        [3.0, 4.0]
        """
        engine = self._loaded("weightsToHost")
        if not self._values:
            raise popart_exception("weightsToHost: the session has no values")
        arrays = {}
        for name, handle in self._programs.weights_out.items():
            info = self._ir.infos[name]
            arrays[name] = np.zeros(info.nelms() * self._options.replicas, info.device.numpy)
            engine.connectStream(handle, arrays[name])
        self._programs.run_apart(engine, parts.WEIGHTS_TO_HOST)
        for name, values in arrays.items():
            info, tensor = self._ir.infos[name], self._programs.weights[name]
            of_each = values.reshape(self._options.replicas, -1)
            if name not in self._shared:
                of_each = of_each[:1]  # all have the same
            host_values = np.stack(
                [restored(tensor, one).reshape(info.dims).astype(info.host) for one in of_each]
            )
            self._weights[name] = (
                self._shared[name].read(host_values, self._options.replicas)
                if name in self._shared
                else host_values[0]
            )

    def readWeights(self, weightsIo: PyWeightsIO | Mapping[str, Array]) -> None:
        """Fill arrays, by the names of weights, with what `weightsToHost` has copied.

        >>> import numpy as np
        >>> from simulator import popart
        >>> from simulator.popart import trial
        >>> session, x, w, y = trial.weighted()
        >>> session.prepareDevice()
        >>> session.weightsFromHost()
        >>> session.weightsToHost()
        >>> weights = {w: np.zeros(2, np.float32)}
        >>> session.readWeights(popart.PyWeightsIO(weights))
        >>> weights[w].tolist()
        [3.0, 4.0]
        """
        arrays = weightsIo.weights if isinstance(weightsIo, PyWeightsIO) else weightsIo
        for name, out in arrays.items():
            values = self._weights.get(name)
            if values is None or out.size != values.size:
                raise popart_exception(f"readWeights: {name!r} is no weight of {out.size} elements")
            out[...] = values.reshape(out.shape)

    def writeWeights(self, weightsIo: PyWeightsIO | Mapping[str, Array]) -> None:
        """Take the values of weights from arrays for the next `weightsFromHost`.

        >>> import numpy as np
        >>> from simulator import popart
        >>> from simulator.popart import trial
        >>> session, x, w, y = trial.weighted()
        >>> session.prepareDevice()
        >>> session.writeWeights(popart.PyWeightsIO({w: np.float32([5.0, 6.0])}))
        >>> session.weightsFromHost()
        >>> session.weightsToHost()
        >>> weights = {w: np.zeros(2, np.float32)}
        >>> session.readWeights(popart.PyWeightsIO(weights))
        >>> weights[w].tolist()
        [5.0, 6.0]
        """
        arrays = weightsIo.weights if isinstance(weightsIo, PyWeightsIO) else weightsIo
        for name, array in arrays.items():
            if name not in self._weights or np.shape(array) not in self._shapes(name):
                shape = list(np.shape(array))
                raise popart_exception(f"writeWeights: {name!r} is no weight of shape {shape}")
            self._weights[name] = np.array(array, dtype=self._ir.infos[name].host)

    def modelToHost(self, path: str | Path) -> None:
        """Write the model with the weights of the device to a file.

        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from simulator import popart
        >>> from simulator.popart import trial
        >>> session, x, w, y = trial.weighted()
        >>> session.prepareDevice()
        >>> session.weightsFromHost()
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "model.onnx")
        ...     session.modelToHost(path)
        ...     popart.Builder(str(path)).getTensorShape(w)
        [2]
        """
        self.weightsToHost()
        if self._model is None:
            raise popart_exception("modelToHost: the model has been let go of")
        write_model(self._model, self._weights, path, more=self._kept)

    def updateExternallySavedTensorLocations(self, fromLocation: str, toLocation: str) -> None:
        """Copy a file of initializers' values; `modelToHost` writes to the copy from now on.

        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> import numpy as np
        >>> from simulator import popart
        >>> builder = popart.Builder()
        >>> x = builder.addInputTensor("FLOAT", [2])
        >>> w = builder.addInitializedInputTensor(np.float32([3.0, 4.0]), "w")
        >>> y = builder.aiOnnx.mul([x, w])
        >>> builder.addOutputTensor(y)
        >>> device = popart.DeviceManager().createIpuModelDevice({"numIPUs": 1, "tilesPerIPU": 4})
        >>> flow = popart.DataFlow(1, [y])
        >>> with TemporaryDirectory() as folder:
        ...     old, new = Path(folder, "old.bin"), Path(folder, "new.bin")
        ...     builder.saveInitializersExternally([w], str(old))
        ...     session = popart.InferenceSession(builder.getModelProto(), flow, device)
        ...     session.updateExternallySavedTensorLocations(str(old), str(new))
        ...     np.fromfile(new, np.float32).tolist()
        [3.0, 4.0]
        """
        if self._model is None:
            raise popart_exception(
                "updateExternallySavedTensorLocations: the model has been let go of"
            )
        relocate(self._model.graph.initializer, str(fromLocation), str(toLocation))

    def let_go_of_model(self) -> None:
        """Free the model that the session is made of; `modelToHost` then refuses.

        >>> from simulator import popart
        >>> from simulator.popart import trial
        >>> session, x, w, y = trial.weighted()
        >>> session.prepareDevice()
        >>> session.let_go_of_model()
        >>> session.weightsFromHost()
        >>> session.modelToHost("model.onnx")
        Traceback (most recent call last):
            ...
        simulator.popart.errors.popart_exception: modelToHost: the model has been let go of
        """
        self._model = None

    def _let_go_of_weights(self) -> None:
        self._weights = dict.fromkeys(self._weights)
        self._ir.let_go_of_weights()

    def resetHostWeights(
        self, model: Model, ignoreWeightsInModelWithoutCorrespondingHostWeight: bool = False
    ) -> None:
        """Take the weights of another model for the next `weightsFromHost`.

        Raises popart_exception where it has more than an inference, unless those may be ignored.

        >>> import numpy as np
        >>> from simulator import popart
        >>> def model(values):
        ...     builder = popart.Builder()
        ...     x = builder.addInputTensor("FLOAT", [2])
        ...     w = builder.addInitializedInputTensor(np.float32(values), "w")
        ...     builder.addOutputTensor(builder.aiOnnx.mul([x, w]))
        ...     return builder.getModelProto()
        >>> device = popart.DeviceManager().createIpuModelDevice({"numIPUs": 1, "tilesPerIPU": 4})
        >>> flow = popart.DataFlow(1, ["Mul:0"])
        >>> session = popart.InferenceSession(model([3.0, 4.0]), flow, device)
        >>> session.resetHostWeights(model([5.0, 6.0]))
        >>> weights = {"w": np.zeros(2, np.float32)}
        >>> session.readWeights(popart.PyWeightsIO(weights))
        >>> weights["w"].tolist()
        [5.0, 6.0]
        """
        stored = weights_of(*read_model(model))
        unknown = [name for name in stored if name not in self._ir.infos]
        if unknown and not self.training and not ignoreWeightsInModelWithoutCorrespondingHostWeight:
            raise popart_exception(f"resetWeights, no tensor '{unknown[0]}' in tensors")
        for name, values in self._weights.items():
            if name in self._kept and name not in stored:
                continue  # the optimiser goes on with what it has
            array = stored.get(name)
            shapes = self._shapes(name)
            if array is None or array.shape not in shapes:
                shape = "missing" if array is None else f"of shape {list(array.shape)}"
                raise popart_exception(
                    f"resetHostWeights: weight {name!r} is {shape}; {list(shapes[0])} is needed"
                )
            self._weights[name] = array if values is None else array.astype(values.dtype)


def flat(values: Array) -> Array:
    """Return an array's elements in order."""
    return np.ascontiguousarray(values).reshape(-1)


def _same(values: Array) -> Array:
    return values


def _fill(buffer: Array, tensor: Tensor, take: Callable[[], Array]) -> None:
    """Fill the buffer of a transfer with a weight's values."""
    arranged(tensor, take(), buffer)
