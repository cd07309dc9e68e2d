"""Write the exports of the test modules that `make test` runs without PyTorch.

python -m tests.poptorch.make_exports    (in the environment of `make test-torch`)

NAME.onnx.gz is the export, without folders of a machine; NAME.npz its input and the output.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import onnx
import torch

from simulator.popart.representation.origins import CLASSES, SCOPES, STACK, is_library
from simulator.poptorch.exporting.export import export
from tests.poptorch.modules import MODULES, Trained, seeded

FOLDER = Path(__file__).parent / "exports"
KEPT = (SCOPES, CLASSES, STACK)
FRAME = re.compile(r'File "(.+?)", line (\d+), in (\w+)')


def plain(model: onnx.ModelProto) -> onnx.ModelProto:
    """Leave of the metadata what tells module, class and line; of a file only its name."""
    del model.metadata_props[:], model.graph.value_info[:]
    for node in model.graph.node:
        noted = {entry.key: entry.value for entry in node.metadata_props if entry.key in KEPT}
        own = [f for f in FRAME.findall(noted.get(STACK, "")) if not is_library(f[0])]
        noted[STACK] = "\n".join(
            f'File "{Path(f).name}", line {n}, in {name}' for f, n, name in own
        )
        del node.metadata_props[:]
        node.doc_string = ""
        for key, value in noted.items():
            node.metadata_props.add(key=key, value=value)
    return model


def save(model: onnx.ModelProto, name: str) -> None:
    """Write a model, compressed, as the same bytes each time."""
    data = plain(model).SerializeToString(deterministic=True)
    (FOLDER / f"{name}.onnx.gz").write_bytes(gzip.compress(data, 9, mtime=0))


def main() -> None:
    """Write all, and the training module of one."""
    FOLDER.mkdir(exist_ok=True)
    for name in MODULES:
        module, data = seeded(name)
        with torch.no_grad():
            out = module(data)
        save(export(module, (data,), {}).model, name)
        np.savez_compressed(FOLDER / f"{name}.npz", x=data.numpy(), y=out.numpy())
    module, data = seeded("convolutions")
    labels = torch.tensor([1, 3])
    made = export(Trained(module).train(), (data, labels), {})
    save(made.model, "training")
    sizes = sum(file.stat().st_size for file in FOLDER.iterdir())
    print(f"{sizes / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
