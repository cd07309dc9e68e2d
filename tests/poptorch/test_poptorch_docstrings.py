"""Each function of PopTorch has an example, which runs as it stands."""

from __future__ import annotations

import doctest
import inspect
import types

import pytest

pytest.importorskip("torch", reason="needs torch: make test-torch")
pytest.importorskip("onnxscript", reason="needs onnxscript: make test-torch")

from simulator import poptorch  # noqa: E402 - asked for behind torch

NAMES = [name for name in poptorch.__all__
         if isinstance(getattr(poptorch, name), types.FunctionType)]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_function_gives_what_it_shows(name: str) -> None:
    text = inspect.getdoc(getattr(poptorch, name)) or ""
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(doctest.DocTestParser().get_doctest(text, {}, name, None, None))
    assert (runner.tries > 0, runner.failures) == (True, 0)
