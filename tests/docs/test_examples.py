"""The examples in the docstrings: they run as they stand, and what users call first has one."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import types
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from pkgutil import resolve_name

import pytest

from simulator import model_runtime, popart, popef, poplar
from simulator.poplibs import popnn, popops
from simulator.poplibs.popnn.nonlinearities import nonlinearity_functions
from simulator.poplibs.popops import operators
from simulator.runtime import half_conversion

ROOT = Path(__file__).parents[2]
PACKAGES = ("pva", "pvti", "simulator")
TORCH = "simulator/poptorch"  # its examples are run where torch is: tests/poptorch
# Of these packages every public function has an example; of the others, those of a first program.
IN_FULL = (
    "pva",
    "pvti",
    "simulator.model_runtime",
    "simulator.popart",
    "simulator.popart.trial",
    "simulator.popdist",
    "simulator.popdist.popart",
    "simulator.popef",
    "simulator.poplar",
    "simulator.poplibs.gcl",
    "simulator.poplibs.popfloat.experimental",
    "simulator.poplibs.poplin",
    "simulator.poplibs.poplin.fc",
    "simulator.poplibs.poplin.multiconv",
    "simulator.poplibs.popnn",
    "simulator.poplibs.popnn.ctc_infer",
    "simulator.poplibs.popnn.experimental",
    "simulator.poplibs.popnn.pooling",
    "simulator.poplibs.popnn.recurrence.gru_backward",
    "simulator.poplibs.popnn.recurrence.lstm_backward",
    "simulator.poplibs.popnn.recurrence.recurrent",
    "simulator.poplibs.popnn.temporal_classification.ctc_loss",
    "simulator.poplibs.popops",
    "simulator.poplibs.popops.embedding",
    "simulator.poplibs.popops.rearrange",
    "simulator.poplibs.poprand",
    "simulator.poplibs.popsparse.dynamic",
    "simulator.poplibs.popsparse.embedding",
    "simulator.poplibs.popsparse.static_",
    "simulator.poplibs.poputil",
)
# Of the classes of these packages every public method and property has one, those that they
# inherit, too. Of some those in the library's spelling: the others are for the library itself.
OF_CLASSES = (model_runtime, popart, popef, poplar, poplar.program)
OPTIMIZERS = (popart.Adam, popart.Adaptive, popart.ConstSGD, popart.Optimizer, popart.SGD)
CLASSES: dict[type, Iterable[str]] = {
    **{
        one: dir(one)
        for package in OF_CLASSES
        for one in vars(package).values()
        if isinstance(one, type)
        and one.__module__.startswith("simulator.")
        and not issubclass(one, Enum | Exception)
    },
    **{one: [n for n in dir(one) if "_" not in n] for one in (poplar.Graph, poplar.Target)},
    **{one: [n for n in dir(one) if not n.islower()] for one in OPTIMIZERS},
    **dict.fromkeys((poplar.DebugContext, poplar.DebugInfo), ("getPathName",)),
    poplar.OptionFlags: ("at", "set"),
}
METHOD = (types.FunctionType, classmethod, staticmethod, property)
METHODS = [
    f"{one.__module__}:{one.__name__}.{name}"
    for one, names in CLASSES.items()
    for name in names
    if not name.startswith("_") and isinstance(inspect.getattr_static(one, name), METHOD)
]
# The functions of recurrent layers: in PopLibs' spelling, some made of the layer's row.
LAYERS = [
    f"simulator.poplibs.popnn.{layer}:{name}"
    for layer in ("gru", "lstm")
    for name, item in vars(getattr(popnn, layer)).items()
    if isinstance(item, types.FunctionType)
    and item.__module__.startswith("simulator.poplibs.popnn.")
    and not name.islower()
]
EXPRESSIONS = [
    f"simulator.poplibs.popops.expr:{name}"
    for name, item in vars(popops.expr).items()
    if isinstance(item, types.FunctionType) and "_" not in name
]
FIRST = (
    "pva:Report.sql",
    "pvti:Graph",
    "pvti:HeatmapDouble",
    "pvti:Tracepoint",
    *(f"{one.__module__}:{one.__name__}" for one in CLASSES),
    *METHODS,
    *LAYERS,
    *EXPRESSIONS,
)


def with_examples() -> list[str]:
    """List the modules that have an example in a docstring."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    files = (file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py")))
    here = (file for file in files if ROOT / TORCH not in file.parents)
    sources = ((file, file.read_text(encoding="utf-8")) for file in here)
    return [
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for file, source in sources
        if ">>>" in source
        and any(
            ">>>" in (ast.get_docstring(node) or "")
            for node in ast.walk(ast.parse(source))
            if isinstance(node, documented)
        )
    ]


@pytest.mark.parametrize("module", with_examples())
def test_the_examples_of_a_module_give_what_they_show(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    outcome = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS)
    assert outcome.attempted > 0
    assert outcome.failed == 0


# The functions of operators and non-linearities are made of a table, those of recurrent layers of
# a row, and their examples with them.
MODULES_OF_TABLES = (
    operators, nonlinearity_functions, popnn.bn, popnn.gn, popnn.ln, popnn.in_, popnn.gru,
    popnn.lstm, half_conversion, popops.expr,
)  # fmt: skip
OF_TABLES = [
    pytest.param(item, id=name)
    for module in MODULES_OF_TABLES
    for name, item in sorted(vars(module).items())
    if isinstance(item, types.FunctionType)
    and not item.__module__.startswith("simulator.graph.")  # that they use
    and ">>>" in (inspect.getdoc(item) or "")
]


@pytest.mark.parametrize("function", OF_TABLES)
def test_the_example_of_a_function_of_a_table_gives_what_it_shows(
    function: types.FunctionType,
) -> None:
    text = inspect.getdoc(function) or ""
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(doctest.DocTestParser().get_doctest(text, {}, function.__name__, None, None))
    assert (runner.tries > 0, runner.failures) == (True, 0)


def functions_of(package: str) -> list[str]:
    """List the public functions of a package, or those that a namespace of it defines."""
    module = importlib.import_module(package)
    functions = {n: f for n, f in vars(module).items() if isinstance(f, types.FunctionType)}
    own = [n for n, f in functions.items() if f.__module__ == package and not n.startswith("_")]
    exported = getattr(module, "__all__", own)
    names = [name for name in exported if isinstance(getattr(module, name), types.FunctionType)]
    return [f"{package}:{name}" for name in names]


@pytest.mark.parametrize(
    "name", [*FIRST, *(name for package in IN_FULL for name in functions_of(package))]
)
def test_what_users_call_first_has_an_example(name: str) -> None:
    member = resolve_name(name)
    bases = member.__mro__ if isinstance(member, type) else (member,)
    assert any(">>>" in (inspect.getdoc(one) or "") for one in bases)
