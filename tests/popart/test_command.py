"""`tilescope simulate MODEL.onnx` leaves a report, or says in one line what is wrong."""

from __future__ import annotations

import dataclasses
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from models import model, node

from cli.main import tilescope
from pva.analysis import main_run
from pva.analysis.operations.costs import operation_costs
from pva.analysis.whole_report.provenance import figure_quality
from pva.report import openReport

WEIGHTS = np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)
NODES = [node("MatMul", "x w", "y", name="layer"), node("Softmax", "y", "p", axis=1)]


def saved(folder: Path, proto: onnx.ModelProto) -> str:
    """Write a model; give its path."""
    path = folder / "net.onnx"
    path.write_bytes(proto.SerializeToString())
    return str(path)


def simulated(path: str, out: Path, *more: str) -> Result:
    command = ["simulate", path, "--target", "tiny", "--out", str(out), *more]
    return CliRunner().invoke(tilescope, command)


def small(folder: Path) -> str:
    return saved(folder, model(NODES, {"x": [2, 4]}, ["p"], {"w": WEIGHTS}))


def test_a_model_runs_on_random_inputs_and_leaves_a_report(tmp_path: Path) -> None:
    done = simulated(small(tmp_path), tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "p: 2 x 3 of float32, 0." in done.stdout and "compiling" in done.stderr
    report = openReport(tmp_path / "out")
    assert [run.name for run in report.execution.runs] == ["run"]
    assert [run.name for run in report.execution.otherRuns] == ["weightsFromHost"]


def test_what_a_command_adds_to_a_graph_has_no_line_of_a_user(tmp_path: Path) -> None:
    assert simulated(small(tmp_path), tmp_path / "out").exit_code == 0
    contexts = openReport(tmp_path / "out").dataset.table("debug_contexts")
    assert len(contexts["file"]) > 0
    assert set(contexts["file"]) == {""}


def test_nodes_without_names_have_those_of_their_outputs(tmp_path: Path) -> None:
    """Of a file: one with a name, two without, of which one has an output of that name."""
    nodes = [node("Sigmoid", "x", "a", name="mine"), node("Softmax", "a", "soft", axis=1),
             node("Sqrt", "soft", "mine")]  # fmt: skip
    path = saved(tmp_path, model(nodes, {"x": [2, 4]}, ["mine"]))
    assert simulated(path, tmp_path / "out").exit_code == 0
    costs = operation_costs(openReport(tmp_path / "out"), layer="popart")
    named = dict(zip(costs["operation"], costs["kind"], strict=True))
    assert {name: named.get(name, "").rpartition(".")[2].partition("-")[0]
            for name in ("mine:0", "soft", "mine:1")} == {
        "mine:0": "Sigmoid", "soft": "Softmax", "mine:1": "Sqrt",
    }  # fmt: skip


def test_indices_are_of_any_row_of_their_table(tmp_path: Path) -> None:
    table = np.arange(10, dtype=np.float32)
    proto = model([node("Gather", "table ids", "y")], {"ids": [200]}, ["y"], {"table": table}, 13)
    proto.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
    done = simulated(saved(tmp_path, proto), tmp_path / "out")
    assert "y: 200 of float32, 0 to 9" in done.stdout, done.output


def test_batch_and_ipus_are_those_asked_for(tmp_path: Path) -> None:
    done = simulated(small(tmp_path), tmp_path / "out", "--batch", "5", "--ipus", "2")
    assert done.exit_code == 0, done.output
    assert "p: 5 x 3 of float32" in done.stdout
    assert openReport(tmp_path / "out").compilation.target.numIPUs == 2


def test_training_names_its_loss(tmp_path: Path) -> None:
    done = simulated(small(tmp_path), tmp_path / "out", "--train")
    assert done.exit_code == 0, done.output
    assert "trained 1 batch: NllLoss of 'p'" in done.stderr and "\nloss: 1 of" in done.stdout
    execution = openReport(tmp_path / "out").execution
    others = [run.name for run in execution.otherRuns]
    assert others == ["optimizerFromHost", "weightsFromHost"]
    assert [run.name for run in execution.runs] == ["run"]
    assert execution.runs[0].cycles == execution.totalCycles.total > 0
    names = openReport(tmp_path / "out").frames.programs()["name"]
    assert names.str.contains("w/UpdateWeights").any()


@pytest.mark.parametrize(("optimizer", "kept"), [("sgd", 0), ("momentum", 1), ("adam", 2)])
def test_an_optimizer_keeps_its_tensors_for_each_weight(
    tmp_path: Path, optimizer: str, kept: int
) -> None:
    out = tmp_path / "out"
    done = simulated(small(tmp_path), out, "--train", "--no-values", "--optimizer", optimizer)
    assert done.exit_code == 0, done.output
    variables = openReport(out).frames.variables()
    moments = variables[variables["name"].str.startswith("Accl")]
    assert moments["bytes"].tolist() == [WEIGHTS.nbytes] * kept


def test_recomputation_holds_less_at_once(tmp_path: Path) -> None:
    layers = [node("MatMul", f"x{i} w", f"y{i}") for i in range(9)]
    between = [node("Tanh", f"y{i}", f"x{i + 1}") for i in range(9)]
    nodes = [made for pair in zip(layers, between, strict=True) for made in pair]
    proto = model(nodes, {"x0": [512, 8]}, ["x9"], {"w": np.eye(8, dtype=np.float32)})
    peaks = []
    for option in ([], ["--recompute"]):
        out = tmp_path / f"out{len(option)}"
        done = simulated(saved(tmp_path, proto), out, "--train", "--no-values", *option)
        assert done.exit_code == 0, done.output
        steps = openReport(out).compilation.livenessProgramSteps
        peaks.append(max(step.notAlwaysLiveMemory.bytes for step in steps))
    assert peaks[1] < 0.75 * peaks[0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--optimizer", "adam"], "--optimizer and --recompute are of a training: add --train"),
        (["--train", "--optimizer", "adm"], "adm: not known; there are sgd, momentum, adam"),
    ],
)
def test_an_optimizer_that_is_none_is_one_line(
    tmp_path: Path, options: list[str], said: str
) -> None:
    done = simulated(small(tmp_path), tmp_path / "out", *options)
    assert done.exit_code == 2 and said in done.stderr


def test_without_values_nothing_is_computed(tmp_path: Path) -> None:
    done = simulated(small(tmp_path), tmp_path / "out", "--no-values")
    assert done.exit_code == 0 and "float32" not in done.stdout
    assert openReport(tmp_path / "out").execution.runs[0].cycles > 0


def test_open_shapes_are_given_by_name(tmp_path: Path) -> None:
    path = saved(tmp_path, model(NODES, {"x": ["n", 4]}, ["p"], {"w": WEIGHTS}))
    refused = simulated(path, tmp_path / "out")
    assert (refused.exit_code, refused.stdout) == (2, "")
    done = simulated(path, tmp_path / "out", "--shape", "x=7x4")
    assert "p: 7 x 3 of float32" in done.stdout, done.output


def test_unsupported_nodes_are_listed_all_at_once(tmp_path: Path) -> None:
    three = node("Einsum", "x x x", "y", equation="ij,ij,ij->i")
    nodes = [three, node("Unique", "x", "z")]
    path = saved(tmp_path, model(nodes, {"x": [4, 4]}, ["y", "z"], {}, 13))
    done = simulated(path, tmp_path / "out", "--list-unsupported")
    assert done.exit_code == 1
    assert [line.split("(")[1].split(")")[0] for line in done.stdout.splitlines()] == [
        "ai.onnx.Einsum-12",
        "ai.onnx.Unique-11",
    ]
    assert not (tmp_path / "out").exists()
    assert simulated(path, tmp_path / "out").exit_code == 2
    assert simulated(small(tmp_path), tmp_path, "--list-unsupported").exit_code == 0


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (["--shape", "x=a"], "--shape x=a: write INPUT=1x3x224x224"),
        (["--shape", "q=1x4"], "no input 'q'; there are 'x'"),
        (["--target", "mk9"], "mk9"),
        (["--option", "debug.what=1"], "debug.what"),
    ],
)
def test_wrong_options_are_one_line(tmp_path: Path, more: list[str], text: str) -> None:
    done = simulated(small(tmp_path), tmp_path / "out", *more)
    shown = done.stderr or str(done.exception)
    assert done.exit_code != 0 and text in shown and "Traceback" not in shown


def test_a_broken_file_ends_with_2(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(b"\xff\xff\xff")
    done = simulated(str(tmp_path / "net.onnx"), tmp_path / "out")
    assert done.exit_code == 2


SESSIONS = """
import numpy as np
from simulator import popart

builder = popart.Builder()
a = builder.addInputTensor(popart.TensorInfo("FLOAT", [2]))
w = builder.addInitializedInputTensor(np.ones(2, np.float32))
c = builder.aiOnnx.mul([a, w])
loss = builder.aiGraphcore.identityloss([c])
device = popart.DeviceManager().createIpuModelDevice({"ipuVersion": "tiny"})
proto, flow = builder.getModelProto(), popart.DataFlow(1, [c])
inference = popart.InferenceSession(proto, flow, device)
training = popart.TrainingSession(proto, flow, loss, popart.ConstSGD(0.1), device)
for session in (training, inference):
    session.prepareDevice()
    session.weightsFromHost()
    session.run(popart.PyStepIO({a: np.ones(2, np.float32)}, session.initAnchorArrays()))
"""


def test_a_program_with_two_sessions_leaves_two_reports(tmp_path: Path) -> None:
    program, out = tmp_path / "sessions.py", tmp_path / "out"
    program.write_text(SESSIONS)
    result = CliRunner().invoke(tilescope, ["simulate", str(program), "--out", str(out)])
    assert result.exit_code == 0
    for name in ("training", "inference"):
        assert f"report: {out / name}, " in result.output
        (run,) = openReport(out / name).execution.runs
        assert run.name == "run"
    assert "made 2 engines" not in result.output


def test_values_are_fed_and_outputs_are_kept(tmp_path: Path) -> None:
    x, path = np.float32([[1, 2, 3, 4], [0, 0, 0, 1]]), small(tmp_path)
    np.savez(tmp_path / "in.npz", x=x)
    kept = ("--values", str(tmp_path / "in.npz"), "--save-outputs", str(tmp_path / "y.npz"))
    done = simulated(path, tmp_path / "out", *kept)
    assert done.exit_code == 0, done.output
    raised = np.exp(x @ WEIGHTS)
    found = np.load(tmp_path / "y.npz")["p"]
    np.testing.assert_allclose(found, raised / raised.sum(1, keepdims=True), rtol=1e-4)
    again = simulated(path, tmp_path / "out", *kept)
    assert again.exit_code == 2 and "y.npz: already there" in again.stderr
    assert np.load(tmp_path / "y.npz")["p"].tolist() == found.tolist()


@pytest.mark.parametrize(("value", "shape"), [("2,3", "2 x 3"), ("file", "6 x 1")])
def test_an_input_that_is_known_decides_a_shape(tmp_path: Path, value: str, shape: str) -> None:
    proto = model([node("Reshape", "x sizes", "y")], {"x": [6], "sizes": [2]}, ["y"])
    proto.graph.input[1].type.tensor_type.elem_type = onnx.TensorProto.INT64
    np.save(tmp_path / "sizes.npy", np.array([6, 1]))
    text = str(tmp_path / "sizes.npy") if value == "file" else value
    done = simulated(saved(tmp_path, proto), tmp_path / "out", "--input", f"sizes={text}")
    assert f"y: {shape} of float32" in done.stdout, done.output


def test_wrong_values_are_one_line(tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=np.zeros((2, 5)), z=np.zeros(3))
    np.savez(tmp_path / "text.npz", x=np.full((2, 4), "a"))
    np.save(tmp_path / "one.npy", np.zeros(3))
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04 cut")
    for more, text in (
        (["--input", "w=1"], "no input 'w'; there are 'x'"),
        (["--input", "x=one,two"], "'one,two' is no number"),
        (["--input", "x=1,2"], "input 'x': has shape [2]; FLOAT [2, 4] would be needed"),
        (["--input", "x="], "write INPUT=VALUE"),
        (["--values", str(tmp_path / "in.npz")], "no input 'z'; there are 'x'"),
        (["--values", str(tmp_path / "one.npy")], "one array; a .npz file"),
        (["--values", str(tmp_path / "bad.npz")], "bad.npz: not a file of NumPy"),
        (["--values", str(tmp_path / "text.npz")], "is of type <U1; FLOAT"),
        (["--values", str(tmp_path / "none.npz")], "none.npz: no such file"),
        (["--values", str(tmp_path)], "a directory"),
        (["--save-outputs", "y.npz", "--no-values"], "drop --no-values"),
    ):
        done = simulated(small(tmp_path), tmp_path / "out", *more)
        assert (done.exit_code, done.stderr.count("\n")) == (2, 1), done.output
        assert text in done.stderr


def test_a_model_that_does_not_fit_ends_with_1_and_keeps_its_report(tmp_path: Path) -> None:
    proto = model([node("MatMul", "x w", "y")], {"x": [64, 600]}, ["y"],
                  {"w": np.zeros((600, 600), np.float32)})  # fmt: skip
    done = simulated(saved(tmp_path, proto), tmp_path / "out", "--no-values")
    tiles = openReport(tmp_path / "out").frames.memory_by_tile()["total_including_gaps"]
    limit = openReport(tmp_path / "out").compilation.target.bytesPerTile
    assert (done.exit_code, tiles.max() > limit) == (1, True)
    over = (tiles.max() - limit) / 1024
    assert f"{(tiles > limit).sum()} tiles out of memory" in done.stderr
    assert f"{over:.1f} kB too much" in done.stderr
    assert simulated(small(tmp_path), tmp_path / "fits").exit_code == 0


def test_a_product_without_a_plan_does_not_fit(tmp_path: Path) -> None:
    proto = model(
        [node("MatMul", "x w", "y", name="large")], {"x": [1, 8191], "w": [8191, 8191]}, ["y"]
    )
    done = simulated(saved(tmp_path, proto), tmp_path / "out", "--no-values")
    assert done.exit_code == 1
    assert done.stderr.splitlines()[-1].startswith("does not fit: node 'large'")
    assert "no plan fits: the smallest takes" in done.stderr


def test_where_no_plan_exists_the_report_is_of_what_the_model_holds(tmp_path: Path) -> None:
    proto = model(
        [node("MatMul", "x w", "y", name="large")], {"x": [1, 8191], "w": [8191, 8191]}, ["y"]
    )
    done = simulated(saved(tmp_path, proto), tmp_path / "out", "--no-values")
    report = openReport(tmp_path / "out")
    sizes = report.frames.variables().set_index("name")["bytes"]
    reasons = [row.reason for row in figure_quality(report) if row.item == "memory_by_tile"]
    assert (done.exit_code, *sizes[["x", "w"]]) == (1, 4 * 8191, 4 * 8191**2)
    assert [reason.partition(" (")[0] for reason in reasons] == ["no plan exists: node 'large'"]


def test_without_values_external_data_are_not_read(tmp_path: Path) -> None:
    weights = np.zeros((600, 600), np.float32)
    proto = model([node("MatMul", "x w", "y")], {"x": [64, 600]}, ["y"], {"w": weights})
    within = simulated(saved(tmp_path, proto), tmp_path / "within", "--no-values")
    (stored,) = proto.graph.initializer
    stored.ClearField("raw_data")
    stored.data_location = onnx.TensorProto.EXTERNAL
    stored.external_data.add(key="location", value="in-no-file")
    beside = simulated(saved(tmp_path, proto), tmp_path / "beside", "--no-values")
    assert (within.exit_code, beside.exit_code) == (1, 1)  # neither fits
    assert beside.stderr == within.stderr.replace("within", "beside")
    tables = [openReport(tmp_path / n).frames.memory_by_tile() for n in ("within", "beside")]
    assert tables[0].equals(tables[1])
    done = simulated(saved(tmp_path, proto), tmp_path / "values")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1), done.output
    assert "'w': external data" in done.stderr and "in-no-file" in done.stderr


def test_repeated_batches_fill_a_pipeline_and_every_face_says_so(tmp_path: Path) -> None:
    nodes = [node("MatMul", f"x{i} w", f"x{i + 1}") for i in range(3)]
    proto = model(nodes, {"x0": [2, 4]}, ["x3"], {"w": np.eye(4, dtype=np.float32)})
    done = simulated(saved(tmp_path, proto), tmp_path / "out", "--ipus", "3", "--repeat", "6",
                     "--json")  # fmt: skip
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert [each["shape"] for each in found["outputs"]] == [[6, 2, 4]]
    run = found["run"]
    assert (run["items"], run["batches"], run["stages"]) == (12, 6, 3)
    assert found["run"] == dataclasses.asdict(main_run(openReport(tmp_path / "out")))
    info = CliRunner().invoke(tilescope, ["info", "--json", str(tmp_path / "out")]).stdout
    assert json.loads(info)["run"] == run
    steady = f"steady: {run['steady_items_per_second']:,.0f} items/s, "
    assert steady in done.stderr and "all 3 stages full" in done.stderr
    assert f"items: {run['items_per_second']:,.0f} items/s, 12 items in 1 run" in done.stderr
    lines = done.stderr.splitlines()
    for label in ("run: ", "items: ", "steady: ", "latency: ", "set-up: "):
        (line,) = (line for line in lines if line.startswith(label))
        assert len(line) <= 80


def test_batches_too_few_for_the_stages_are_told_how_many_are_needed(tmp_path: Path) -> None:
    done = simulated(small(tmp_path), tmp_path / "out", "--ipus", "2", "--repeat", "2")
    assert "steady: – items/s: 2 batches are too few for 2 stages; --repeat 3" in done.stderr
    assert "steady" not in simulated(small(tmp_path), tmp_path / "one").stderr


@pytest.mark.parametrize("wrong", ["0", "-2", "1.5", "many"])
def test_a_number_of_batches_that_cannot_be_is_one_line(wrong: str, tmp_path: Path) -> None:
    done = simulated(small(tmp_path), tmp_path / "out", "--repeat", wrong)
    assert done.exit_code == 2 and done.stderr.count("\n") == 1
    assert f"Invalid value for '--repeat': {wrong} is" in done.stderr.replace(f"'{wrong}'", wrong)
    assert not (tmp_path / "out").exists()


def test_values_that_are_fed_are_those_of_every_batch(tmp_path: Path) -> None:
    np.savez(tmp_path / "fed.npz", x=np.arange(8, dtype=np.float32).reshape(2, 4))
    done = simulated(small(tmp_path), tmp_path / "out", "--values", str(tmp_path / "fed.npz"),
                     "--repeat", "3", "--save-outputs", str(tmp_path / "made.npz"))  # fmt: skip
    assert done.exit_code == 0, done.output
    made = np.load(tmp_path / "made.npz")["p"]
    assert made.shape == (3, 2, 3)
    np.testing.assert_array_equal(made, np.broadcast_to(made[0], made.shape))


@pytest.mark.parametrize(("more", "kind"), [([], "float"), (["--partials", "half"], "half")])
def test_partials_are_floats_unless_halves_are_asked_for(
    tmp_path: Path, more: list[str], kind: str
) -> None:
    weights = {"w": np.ones((32, 32), dtype=np.float16)}
    halves = model([node("MatMul", "x w", "p")], {"x": [32, 32]}, ["p"], weights)
    for value in halves.graph.input:
        value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    done = simulated(saved(tmp_path, halves), tmp_path / "out", "--no-values", *more)
    assert done.exit_code == 0, done.output
    names = openReport(tmp_path / "out").frames.vertex_types()["name"]
    assert names.str.startswith(f"poplin::ConvPartial1x1Out<half,{kind},").any(), list(names)


def test_io_tiles_load_the_next_batch_while_this_one_is_computed(tmp_path: Path) -> None:
    big = model([node("Relu", "x", "r"), node("Tanh", "r", "p")], {"x": [64, 64]}, ["p"], {})
    path, repeat = saved(tmp_path, big), ("--repeat", "8", "--io-tiles", "2")
    beside = simulated(path, tmp_path / "beside", *repeat)
    in_turns = simulated(
        path, tmp_path / "turns", *repeat, "--exchange-strategy", "just-in-time", "--json"
    )
    assert (beside.exit_code, in_turns.exit_code) == (0, 0), beside.output + in_turns.output
    steady = [main_run(openReport(tmp_path / name)) for name in ("beside", "turns")]
    assert steady[0].stages == 3 and steady[0].steady_cycles < steady[1].steady_cycles
    outputs = json.loads(in_turns.stdout)["outputs"]
    assert f"{outputs[0]['least']:.6g} to {outputs[0]['most']:.6g}" in beside.stdout


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (["--io-tiles", "4"], "numIOTiles is 4; an even number below 4"),
        (["--exchange-strategy", "just-in-time"], "add --io-tiles N"),
    ],
)
def test_io_tiles_that_cannot_be_are_one_line(tmp_path: Path, more: list[str], text: str) -> None:
    done = simulated(small(tmp_path), tmp_path / "out", *more)
    assert done.exit_code == 2 or done.exit_code == 1
    assert text in done.output and "Traceback" not in done.output


def test_a_kept_program_that_is_damaged_is_compiled_again_with_one_warning(tmp_path):
    path, kept = small(tmp_path), tmp_path / "kept"
    assert "warn" not in simulated(path, tmp_path / "a", "--cache", str(kept)).stderr.lower()
    (file,) = kept.glob("*.popef")
    file.write_bytes(file.read_bytes()[:100])
    lines = simulated(path, tmp_path / "b", "--cache", str(kept)).stderr.splitlines()
    assert [str(file) in line and " W: " in line for line in lines if "again" in line] == [True]
    assert simulated(path, tmp_path / "c", "--cache", str(kept)).stderr.count("again") == 0


def test_a_batch_that_a_reshape_fixes_is_refused_with_the_way_out(tmp_path):
    nodes = [node("Reshape", "x s", "y", name="flat")]
    proto = model(nodes, {"x": [1, 2, 3]}, ["y"], {"s": np.array([1, 6], np.int64)})
    refused = simulated(saved(tmp_path, proto), tmp_path / "out", "--batch", "2")
    assert refused.exit_code == 2 and len(refused.stderr.splitlines()) == 1
    assert "12 elements against 6" in refused.stderr and "open (-1)" in refused.stderr


@pytest.mark.parametrize("megabytes", [300, 400, 600])
def test_a_host_without_memory_is_told_in_a_line_in_every_phase(
    tmp_path: Path, megabytes: int
) -> None:
    """Of a model with 64 MB of weights: imports, reading, lowering, compiling, values, the run."""
    weights = {"w": np.ones((4096, 4096), np.float32)}
    path = saved(tmp_path, model(NODES[:1], {"x": [2, 4096]}, ["y"], weights))
    command = [sys.executable, "-m", "cli.main", "simulate", path, "--out", str(tmp_path / "out")]
    limit = (megabytes * 1_000_000,) * 2
    done = subprocess.run(
        command,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 2), done.stderr
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("execution" if done.returncode == 0 else "tilescope: ")
