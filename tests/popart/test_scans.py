"""Scans against NumPy: what is carried, stacks along any axis, both directions, bodies as given."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from models import model, node
from onnx import TensorProto, helper

from simulator import popart
from simulator.popart import backend, popart_exception

RANDOM = np.random.default_rng(3)


def scan(body: onnx.GraphProto, inputs: str, outputs: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node("Scan", inputs.split(), outputs.split(), body=body, **attributes)


def running_sum(sizes: list[int]) -> onnx.GraphProto:
    """Return a body that adds each slice, scaled by `w` around it, to what is carried."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes)
              for name in ("sum", "slice", "next", "shown")]  # fmt: skip
    nodes = [node("Mul", "slice w", "scaled"), node("Add", "sum scaled", "next"),
             node("Identity", "next", "shown")]  # fmt: skip
    return helper.make_graph(nodes, "body", values[:2], values[2:])


@pytest.mark.parametrize("way", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_a_scan_runs_along_an_axis_in_a_direction(axis: int, way: int) -> None:
    x, w = RANDOM.normal(size=(3, 4, 2)).astype(np.float32), np.float32(0.5)
    sizes = np.delete(x.shape, axis).tolist()
    made = scan(running_sum(sizes), "first x", "last all", num_scan_inputs=1,
                scan_input_axes=[axis], scan_input_directions=[way],
                scan_output_axes=[axis], scan_output_directions=[way])  # fmt: skip
    first = np.ones(sizes, dtype=np.float32)
    proto = model([made], {"first": sizes, "x": x.shape}, ["last", "all"], {"w": w})
    last, every = backend.prepare(proto).run([first, x])
    order = np.flip(x, axis) if way else x
    sums = np.cumsum(order * w, axis) + np.expand_dims(first, axis)
    np.testing.assert_allclose(last, np.take(sums, -1, axis), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(every, np.flip(sums, axis) if way else sums, rtol=1e-5, atol=1e-6)


def test_a_state_that_changes_its_shape_is_refused() -> None:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
              for name in ("sum", "slice", "next")]  # fmt: skip
    body = helper.make_graph([node("Concat", "sum slice", "next", axis=0)], "body", values[:2],
                             values[2:])  # fmt: skip
    proto = model([scan(body, "first x", "last", num_scan_inputs=1)],
                  {"first": [2], "x": [3, 2]}, ["last"])  # fmt: skip
    with pytest.raises(popart_exception, match=r"'first' goes in as FLOAT \[2\] and comes out"):
        backend.prepare(proto).run([np.zeros(2, np.float32), np.zeros((3, 2), np.float32)])


def _built_scan(axis: int, *, back: bool) -> tuple[popart.Builder, list[str]]:
    """Return a builder with a Scan of PopART's form: y = [s; 2 s] of the slices s of x."""
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [2, 3]), "x")
    body = builder.createSubgraphBuilder()
    s = body.addUntypedInputTensor("s")
    body.addOutputTensor(body.aiOnnx.concat([s, body.aiOnnx.add([s, s])], axis))
    names = builder.aiOnnx.scan(
        [x], num_scan_inputs=1, body=body, num_outputs=1, scan_input_axes=[axis],
        scan_output_axes=[axis - 2], scan_output_directions=[int(back)],
    )  # fmt: skip
    return builder, names


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_scan_of_the_builder_keeps_the_axis_of_slices_and_joins_outputs(
    axis: int, back: bool
) -> None:
    builder, [y] = _built_scan(axis, back=back)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    slices = [np.concatenate([s, 2 * s], axis) for s in np.split(x, x.shape[axis], axis)]
    session = popart.InferenceSession(
        builder.getModelProto(),
        popart.DataFlow(1, [y]),
        popart.DeviceManager().createCpuDevice(),
    )
    session.prepareDevice()
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO({"x": x}, anchors))
    wanted = np.concatenate(slices[::-1] if back else slices, axis)
    assert anchors[y].tolist() == wanted.tolist()
