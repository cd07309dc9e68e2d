"""Sessions of PopART and engines of Poplar in PopEF files: written, read, run."""

from __future__ import annotations

import numpy as np
import pytest

from pva.errors import PvaError
from simulator import popart, popef, poplar
from simulator.model_runtime import ModelRunner, Session
from simulator.popef.declaration import BlobType
from simulator.poplar import FLOAT, program
from tests.popart.models import model, node, tiny
from tests.popef.files import W, X, product, session


def described(anchor):
    return anchor.name(), anchor.handle(), anchor.type().value, anchor.programs()


def test_numbers_anchors_and_order_of_blobs_are_those_of_popart(tmp_path):
    session().saveExecutable(tmp_path)
    reader = popef.Reader()
    reader.parseFile(tmp_path / "executable.popef")
    (metadata,) = reader.metadata()
    assert [described(anchor) for anchor in metadata.anchors()] == [
        ("w", "h2d_w", "input", [0]),
        ("w", "d2h_w", "output", [7]),
        ("x", "h2d_x", "input", [5]),
        ("y", "d2h_y", "output", [5]),
    ]
    flow = metadata.programFlow()
    assert (flow.load(), flow.main(), flow.save()) == ([0], [5], [])
    assert metadata.isInference() and metadata.deviceIterations() == 1
    kinds = [blob.type for blob in reader.blobs]
    assert kinds == [
        BlobType.METADATA,
        BlobType.POPLAR_EXECUTABLE,
        BlobType.OPAQUE,
        BlobType.DATA_TENSOR,
    ]
    np.testing.assert_array_equal(reader.tensors()[0].data(), W)


def fresh(proto=None, **options):
    flow, chosen = popart.DataFlow(1, ["y"]), popart.SessionOptions(**options)
    return popart.InferenceSession(proto or product(), flow, tiny(), userOptions=chosen)


def test_a_loaded_executable_runs_without_being_compiled(tmp_path, monkeypatch):
    fresh().compileAndExport(tmp_path)
    other = fresh()
    monkeypatch.setattr(type(other), "_built", None)  # nothing may be lowered
    other.loadExecutable(tmp_path)
    other.prepareDevice()
    anchors = other.initAnchorArrays()
    other.run(popart.PyStepIO({"x": X}, anchors))
    np.testing.assert_allclose(anchors["y"], X @ W)


def test_weights_may_lie_in_a_file_of_their_own(tmp_path):
    made = session()
    made.saveExecutable(tmp_path / "net.popef", saveVariables=False)
    made.saveVariables(tmp_path)
    paths = [tmp_path / "net.popef", tmp_path / "variables.popef"]
    with ModelRunner(paths) as runner:
        np.testing.assert_allclose(runner.execute({"x": X})["y"], X @ W)
    with pytest.raises(RuntimeError, match="anchor 'w' has no data"):
        ModelRunner(paths[0])


def test_the_executable_of_another_model_or_options_is_refused(tmp_path):
    session().saveExecutable(tmp_path)
    wider = model([node("MatMul", "x w", "y")], {"x": [5, 3]}, ["y"], {"w": W})
    for other in (fresh(wider), fresh(enableOutlining=False)):
        with pytest.raises(popart.popart_exception, match="of another model, other options"):
            other.loadExecutable(tmp_path)
    fresh(logDir="elsewhere", reportOptions={"showVarStorage": True}).loadExecutable(tmp_path)


def test_an_executable_of_another_version_is_refused(tmp_path):
    session().saveExecutable(tmp_path / "net.popef")
    reader = popef.Reader()
    reader.parseFile(tmp_path / "net.popef")
    (made,) = reader.executables()
    with popef.FileWriter(tmp_path / "old.popef") as writer:
        writer.write(reader.metadata()[0])
        writer.createExecutable(made.info, version="0.0.1/1").write(made.executable())
    with pytest.raises(PvaError, match="of version 0.0.1/1; this is .*; compile it anew"):
        ModelRunner(tmp_path / "old.popef")


def test_a_training_goes_on_in_another_session_as_in_its_own(tmp_path):
    proto = model([node("MatMul", "x w", "y"), node("ReduceMean", "y", "l", keepdims=0)],
                  {"x": [2, 3]}, ["l"], {"w": W})  # fmt: skip
    momentum = {"defaultLearningRate": (0.5, False), "defaultMomentum": (0.5, False)}

    def trained():
        flow, sgd = popart.DataFlow(1, ["l"]), popart.SGD(momentum)
        return popart.TrainingSession(proto, flow, "l", sgd, tiny())

    def step(one):
        anchors = one.initAnchorArrays()
        one.run(popart.PyStepIO({"x": X}, anchors))
        return float(anchors["l"])

    first, second = trained(), trained()
    first.prepareDevice()
    first.weightsFromHost()
    step(first)
    first.weightsToHost()
    first.saveExecutable(tmp_path)
    second.loadExecutable(tmp_path)
    second.prepareDevice()
    second.weightsFromHost()
    assert [step(second), step(second)] == [step(first), step(first)]
    flow = popef.load_model(tmp_path / "executable.popef").metadata.programFlow()
    assert (flow.load(), flow.save()) == ([0, 1], [7])


def test_streams_of_an_engine_are_the_anchors_of_its_file(tmp_path):
    graph = poplar.Graph(poplar.IPUModel("tiny").createDevice())
    x = graph.addVariable(FLOAT, [4], poplar.VariableMappingMethod.LINEAR, "x")
    down = program.Copy(graph.addHostToDeviceFIFO("in", FLOAT, 4), x)
    up = program.Copy(x, graph.addDeviceToHostFIFO("out", FLOAT, 4))
    graph.createHostRead("x", x)
    engine = poplar.Engine(graph, [down, program.Sequence([down, up])])
    engine.saveExecutable(tmp_path / "copy.popef", {"main": [1]})
    model = popef.load_model(tmp_path / "copy.popef")
    assert [described(anchor) for anchor in model.metadata.anchors()] == [
        ("in", "in", "input", [0, 1]),
        ("out", "out", "output", [1]),
    ]
    with ModelRunner(model) as runner:
        values = np.array([3, 1, 4, 1], np.float32)
        np.testing.assert_array_equal(runner.execute({"in": values})["out"], values)
    with pytest.raises(poplar.PoplarError, match="the flow has program 2"):
        engine.saveExecutable(tmp_path / "copy.popef", {"main": [2]})
    loaded = poplar.Engine(poplar.Engine.loadExecutable(tmp_path / "copy.popef"))
    loaded.load(poplar.IPUModel("tiny").createDevice())
    loaded.saveVariables(tmp_path / "x.popef")
    reader = popef.Reader()
    reader.parseFile(tmp_path / "x.popef")
    assert reader.tensors()[0].data().tolist() == [0, 0, 0, 0]


def test_replicas_get_rows_of_a_transfer_each(tmp_path):
    options = popart.SessionOptions(enableReplicatedGraphs=True, replicatedGraphCount=2)
    flow = popart.DataFlow(1, ["y"])
    made = popart.InferenceSession(product(), flow, tiny(ipus=2), userOptions=options)
    made.compileAndExport(tmp_path)
    two = np.stack([X, X + 1])
    with ModelRunner(tmp_path / "executable.popef") as runner:
        assert runner.getExecuteInputs()[0].shape == (2, 2, 3)
        np.testing.assert_allclose(runner.execute({"x": two})["y"], two @ W)


def test_the_save_program_gives_the_weights_to_a_handler(tmp_path):
    session().saveExecutable(tmp_path)
    run = Session(tmp_path / "executable.popef")
    run.bindToDevice()
    run.runLoadPrograms()
    found = {}
    run.setUserOutputHandler(lambda anchor: lambda values: found.update({anchor.name(): values}))
    run.runProgram(7)
    np.testing.assert_array_equal(found["w"], W)
