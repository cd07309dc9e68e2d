"""The shortest way from a module to its report."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from simulator.popart.sessions.report_folders import give_back
from simulator.poptorch.executor import PoplarExecutor
from simulator.poptorch.options import Options

if TYPE_CHECKING:
    from pva.report import Report


def report(
    module: torch.nn.Module,
    *example_inputs: object,
    target: str = "mk2",
    ipus: int = 1,
    train: bool = False,
    out: str | os.PathLike[str] | None = None,
) -> Report:
    """Export and compile a module, run it once on example inputs, and return its `pva.Report`.

    It runs as in eval(), or with `train` one step of stochastic gradient descent as in train(), by
    the loss that it returns last; the module is as before afterwards. `ipus` share the operations,
    unless it has blocks. `out` is the directory of the report, a temporary one where none is given.
    Raises Error for a module that cannot be run.

    >>> import torch
    >>> from simulator import poptorch
    >>> result = poptorch.report(torch.nn.ReLU(), torch.tensor([-1.0, 2.0]))
    >>> result.compilation.target.numIPUs
    1
    """
    from pva.report import openReport

    directory = Path(out) if out is not None else Path(tempfile.mkdtemp(prefix="tilescope-"))
    options = Options().setTarget(target, ipus).enableProfiling(directory)
    modes = [(inner, inner.training) for inner in module.modules()]
    try:
        model = PoplarExecutor(module.train(train), options, training=train, name="")
        give_back(directory)
        model(*example_inputs)
    finally:
        for inner, mode in modes:
            inner.training = mode
    return openReport(directory)
