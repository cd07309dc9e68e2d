"""What HTTP and gRPC tell alike of models: their tensors, and their counters."""

from __future__ import annotations

from simulator.serving.served import Served
from simulator.serving.server import Server


def model_metadata(server: Server, served: Served) -> dict[str, object]:
    """Return what clients need to know of a model; -1 is the batch."""
    batch = [-1] if served.settings.config.max_batch_size else []
    versions = [one.number for one in server.all_served() if one.name == served.name]
    inputs, outputs = (
        [{"name": t.name, "datatype": t.datatype, "shape": [*batch, *t.dims]} for t in tensors]
        for tensors in (served.settings.inputs, served.settings.outputs)
    )
    return {"name": served.name, "versions": versions, "platform": "poplar",
            "inputs": inputs, "outputs": outputs}  # fmt: skip


def statistics_of(server: Server, model: str, number: str) -> list[dict[str, object]]:
    """Return the counters of all models, of one, or of one of its versions."""
    if model:
        first = server.served(model, number)
        selection = [first] if number else [s for s in server.all_served() if s.name == model]
    else:
        selection = server.all_served()
    return [served.statistics.plain(served.name, served.number) for served in selection]
