"""The import table of the design, held against the source and a running process."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("pva", "pvti", "simulator", "dashboard", "cli", "libpvti")


@dataclass(frozen=True)
class Row:
    """What a package may import at its top, and what only inside functions or for types."""

    eager: tuple[str, ...] = ()
    lazy: tuple[str, ...] = ()
    numpy: bool = True


ARRAYS = ("numpy", "pva.array_types", "pva.json_types")  # the last two name types and no more
MIDDLE = ("pva.version", "pva.errors", "pva.plain_file", "pva.units", "pva.schema", "pva.data",
          "pva.progress", "pva.kernels", "pva.lazy", "pva.collector")  # fmt: skip
READERS = ("pva.formats.registry", "pva.model", "pva.frames", "pva.check")

# The longest prefix that matches a module is its row. A package may always import from itself.
TABLE = {
    "libpvti": Row(("pvti",), numpy=False),
    "pvti": Row(numpy=False),
    "pva": Row(lazy=("pva",)),
    "pva.pva_core": Row(lazy=("pva",)),
    "pva.errors": Row(),
    "pva.version": Row(numpy=False),
    "pva.plain_file": Row(("pva.errors",)),
    "pva.explored": Row(("pva.errors", "pva.plain_file", "pva.schema")),
    "pva.units": Row(),
    "pva.schema": Row(),
    "pva.data": Row(MIDDLE),
    "pva.data.sources": Row(("pva.errors",)),
    "pva.progress": Row(),
    "pva.kernels": Row(),
    "pva.dask_client": Row(("pva.errors",), ("distributed",)),
    "pva.later": Row(("pva.errors",)),
    "pva.collector": Row(numpy=False),
    "pva.array_types": Row(),
    "pva.json_types": Row(numpy=False),
    "pva.lazy": Row(lazy=("pandas",), numpy=False),
    "pva.formats": Row(
        (*MIDDLE, "pvti.schema", "cbor2", "orjson", "msgspec"), ("pyarrow", "perfetto")
    ),
    "pva.model": Row(MIDDLE, ("duckdb",)),
    "pva.model.completion": Row(lazy=("IPython",), numpy=False),
    "pva.frames": Row(MIDDLE),
    "pva.check": Row(MIDDLE),
    "pva.query": Row((*MIDDLE, "pva.frames"), ("duckdb",)),
    "pva.document": Row(("pva",)),
    "pva.report": Row((*MIDDLE, *READERS, "pva.query", "pva.later")),
    "pva.trace": Row(
        (*MIDDLE, "pva.formats.traces.registry", "pva.later", "pva.model", "pva.trace_frames"),
        ("pva.query",),
    ),
    "pva.trace_frames": Row((*MIDDLE, "pva.model", "pva.frames")),
    "pva.analysis": Row(
        ("pva.errors", "pva.lazy", "pva.plain_file", "pva.report", "pva.trace", "pva.units")
        + ("pva.data.graph_hash", "pva.data.tile_sets", "pva.explored", "pva.kernels")
        + ("pva.queueing",)
    ),
    "pva.queueing": Row(
        ("pva.errors", "pva.lazy", "pva.plain_file", "pva.formats.traces.triton_trace", "msgspec")
    ),
    "pva.summary": Row(("pva.analysis", "pva.errors", "pva.report", "pva.units")),
    "pva.plot": Row(
        ("pva.analysis", "pva.errors", "pva.lazy", "pva.plain_file", "pva.report")
        + ("pva.data.tile_sets", "pva.trace", "pva.units", "plotly")
    ),
    "pva.many": Row(("pva",), ("duckdb", "pyarrow", "dask", "distributed")),
    "simulator": Row((*MIDDLE, "pva.formats.registry", "pva.formats.report_directory", "pvti")),
    "simulator.popart": Row(("simulator", *MIDDLE, "onnx", "google.protobuf")),
    "simulator.poptorch": Row(
        ("simulator", *MIDDLE, "onnx", "torch", "onnxscript", "pvti"), ("pva.report",)
    ),
    "simulator.popdist": Row(
        ("simulator", "pva.errors", "pva.data.graph_hash", "pva.formats.registry")
        + ("pva.formats.report_directory", "pva.formats.run_file"), ("mpi4py",),
    ),
    "simulator.popef": Row(
        ("simulator", "pva.collector", "pva.errors", "pva.plain_file", "pva.formats.files")
    ),
    "simulator.model_runtime": Row(("simulator", "pvti", "pva.errors", "pva.units")),
    "simulator.explore": Row(
        ("simulator", *MIDDLE, "pva.dask_client"), ("pyarrow", "optuna", "distributed")
    ),
    "simulator.serving": Row(
        ("simulator", "pvti", *MIDDLE, "pva.queueing", "pva.formats.traces.triton_trace")
        + ("pva.formats.files", "google.protobuf"), ("grpc", "waitress"),
    ),
    "simulator.engine_report": Row(("simulator", "pva.report", "pva.summary", "pva.errors")),
    "dashboard": Row(("dash", "plotly", "pva", "waitress", "flask", "werkzeug", "orjson")
                     + ("dash_ag_grid", "dash_mantine_components", "markdown_it")),
    "dashboard.store": Row(("dashboard.sources", "pva.many", "pva.report", "pva.trace")
                           + ("pva.errors", "pva.plain_file", "pva.schema.exploration")),
    "dashboard.sources": Row(
        ("pva.schema.exploration", "pva.trace", "pva.errors", "pva.plain_file")
        + ("pva.many.exploration",)
    ),
    "dashboard.figures": Row(("plotly", "pva.lazy", "pva.units", "pva.plot")),
    "dashboard.timeline": Row(
        ("dashboard", "pva.analysis", "pva.errors", "pva.plot", "pva.data.tile_sets")
        + ("pva.report", "pva.trace", "pva.units"), ("flask",),
    ),
    "dashboard.export": Row(
        ("dash", "dashboard", "orjson", "pva.analysis", "pva.errors", "pva.plot", "pva.trace")
    ),
    "dashboard.pages": Row(
        ("dash", "dash_ag_grid", "dash_mantine_components", "dashboard", "pva.analysis",
         "pva.lazy", "pva.plain_file", "pva.plot", "pva.check", "pva.data.long_texts",
         "pva.summary", "pva.units", "pva.errors"),
    ),
    "dashboard.pages.explore": Row(
        ("dash", "dashboard", "pva.lazy", "pva.many", "pva.plot", "pva.units", "pva.errors"),
    ),
    "cli": Row(("pva", "click"), ("simulator", "dashboard", "pvti")),
    "cli.agent": Row(("cli", "pva.errors", "mcp", "mcp_types", "pydantic"), ("pva", "dashboard")),
}  # fmt: skip

# What a fresh process must not hold after importing the module.
HEAVY = ("pandas", "duckdb", "pyarrow", "dash", "plotly", "cbor2", "orjson", "msgspec", "click")
FORBIDDEN = {
    "pvti": ("numpy", *HEAVY, "sqlite3", "pva"),
    "pvti.schema": ("numpy", *HEAVY, "sqlite3", "pva"),
    "pva": ("numpy", *HEAVY, "simulator", "dashboard"),
    "pva.report": (
        "pandas",
        "duckdb",
        "pyarrow",
        "dash",
        "plotly",
        "click",
        "simulator",
        "dashboard",
    ),
    "pva.analysis": ("pandas", "dash", "plotly", "click", "simulator", "dashboard"),
    "pva.summary": ("pandas", "dash", "plotly", "click", "simulator", "dashboard"),
    "simulator": ("numpy", *HEAVY, "dashboard", "cli", "torch"),
    "simulator.poplar": (
        "pandas",
        "dash",
        "plotly",
        "click",
        "dashboard",
        "cli",
        "pva.report",
        "onnx",
    ),
    "dashboard.figures": ("dash", "pva.report", "pva.analysis", "simulator"),
    "cli.main": ("numpy", "pandas", "dash", "plotly", "simulator", "dashboard"),
}


@dataclass(frozen=True)
class Import:
    """One import in the source."""

    module: str
    target: str
    lazy: bool
    line: int


@cache
def modules() -> dict[str, Path]:
    """Name every source module."""
    files = [f for p in PACKAGES for f in (ROOT / p).rglob("*.py")]
    return {
        ".".join(f.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): f
        for f in files
    }


def tree(path: Path) -> ast.Module:
    """Parse a file. Trees are not kept: Python's collector walks all of them, again and again."""
    return ast.parse(path.read_text(encoding="utf-8"))


def walk(node: ast.AST, lazy: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Walk a tree; `lazy` inside functions and `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        typing = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        yield child, lazy
        yield from walk(child, lazy or inside or typing)


def statements(body: list[ast.stmt], lazy: bool = False) -> Iterator[tuple[ast.stmt, bool]]:
    """Walk the statements alone, among which all imports are; `lazy` as of `walk`."""
    for node in body:
        yield node, lazy
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        typing = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for part in (node, *getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            for name in ("body", "orelse", "finalbody"):
                yield from statements(getattr(part, name, []), lazy or inside or typing)


@cache
def imports(module: str) -> tuple[Import, ...]:
    """List the imports of a module, `from package import module` resolved to the module."""
    found = []
    for node, lazy in statements(tree(modules()[module]).body):
        if isinstance(node, ast.Import):
            found += [Import(module, alias.name, lazy, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            targets = (f"{base}.{alias.name}" for alias in node.names)
            whole = (target if target in modules() else base for target in targets)
            found += [Import(module, target, lazy, node.lineno) for target in whole]
    return tuple(found)


def under(name: str, prefixes: tuple[str, ...]) -> bool:
    """Return whether a module is one of the prefixes or inside it."""
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


def row_of(module: str) -> tuple[str, Row]:
    """Return the row of a module."""
    prefix = max((p for p in TABLE if under(module, (p,))), key=len)
    return prefix, TABLE[prefix]


def allowed(found: Import) -> bool:
    """Return whether the table allows an import."""
    if found.target.split(".")[0] in sys.stdlib_module_names:
        return True
    prefix, row = row_of(found.module)
    own = (prefix,) if prefix != "pva" else ()
    permitted = own + row.eager + (ARRAYS if row.numpy else ())
    return under(found.target, permitted) or (found.lazy and under(found.target, row.lazy))


@pytest.mark.parametrize("module", sorted(modules()))
def test_module_imports_only_what_its_row_allows(module: str) -> None:
    broken = [f"{i.target} (line {i.line})" for i in imports(module) if not allowed(i)]
    assert broken == []


@pytest.mark.parametrize(("module", "forbidden"), FORBIDDEN.items())
def test_importing_a_module_loads_nothing_heavy(module: str, forbidden: tuple[str, ...]) -> None:
    script = f"import {module}, sys; print('\\n'.join(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.split()
    assert [name for name in loaded if under(name, forbidden)] == []


def test_no_import_cycle() -> None:
    edges = {
        module: {i.target for i in imports(module) if not i.lazy and i.target in modules()}
        for module in modules()
    }
    done: set[str] = set()
    while ready := {m for m in edges if m not in done and edges[m] - {m} <= done}:
        done |= ready
    assert sorted(set(edges) - done) == []


def rings(edges: dict[str, set[str]]) -> list[set[str]]:
    """List the groups of modules that reach each other."""

    def reached(module: str) -> set[str]:
        met, waiting = set(), [module]
        while waiting:
            for target in edges[waiting.pop()] - met:
                met.add(target)
                waiting.append(target)
        return met

    all_reached = {module: reached(module) for module in edges}
    groups = {
        frozenset(other for other in met if module in all_reached[other])
        for module, met in all_reached.items()
        if module in met
    }
    return [set(group) for group in groups]


def test_no_ring_even_of_imports_in_functions_and_for_types() -> None:
    edges = {
        module: {i.target for i in imports(module) if i.target in modules()} - {module}
        for module in modules()
    }
    assert rings(edges) == []


def test_a_ring_is_what_reaches_itself() -> None:
    assert rings({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [{"b", "c"}]
    assert rings({"a": {"b"}, "b": set()}) == []


MAX_MODULES = 24  # of a folder: some 20
FLAT = {"cli": "a module a command, found by what it declares"}


def test_a_folder_of_more_than_some_twenty_modules_has_rooms() -> None:
    sizes = Counter(str(path.parent.relative_to(ROOT)) for path in modules().values())
    large = {folder: size for folder, size in sizes.items() if size > MAX_MODULES}
    assert {folder: size for folder, size in large.items() if folder not in FLAT} == {}
    assert set(FLAT) <= set(large)


def test_no_two_test_files_have_the_same_name() -> None:
    # pytest imports them by their names alone, so that the second one is an error of a whole run.
    names = [file.name for file in ROOT.glob("tests/**/test_*.py")]
    assert sorted(names) == sorted(set(names))


def names_of(module: str) -> set[str]:
    """List the names that a module of the project binds outside functions, and its submodules."""
    path = ROOT / module.replace(".", "/")
    bound = {file.stem for file in path.glob("*")}
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    for node, inside in walk(tree(source)) if source.exists() else ():
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.alias):
            bound.add(node.asname or node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and not inside:
            bound.add(node.id)
    return bound


SCRIPTS = [
    str(f.relative_to(ROOT)) for d in ("benchmarks", "tools") for f in (ROOT / d).rglob("*.py")
]


@pytest.mark.parametrize("script", sorted(SCRIPTS))
def test_benchmarks_and_tools_import_names_that_exist(script: str) -> None:
    own = {path.name.removesuffix(".py") for path in ROOT.glob("*/")}
    missing = [
        f"{node.module}.{alias.name} (line {node.lineno})"
        for node in ast.walk(tree(ROOT / script))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in own
        for alias in node.names
        if not {alias.name, "__getattr__"} & names_of(node.module or "")
    ]
    assert missing == []


# A page computes nothing and reads nothing of a dataset: that is beside its analysis.
_COMPUTATIONS = {"sum", "groupby", "cumsum", "sort_values", "nlargest", "merge"}
_READS = {"column", "array", "value"}


def computations(source: ast.AST) -> int:
    """Count the sums, groups and orders of a module, and what it reads from a dataset."""
    attributes = [node for node in ast.walk(source) if isinstance(node, ast.Attribute)]
    calls = [node.func for node in ast.walk(source) if isinstance(node, ast.Call)]
    computed = [f for f in calls if isinstance(f, ast.Attribute) and f.attr in _COMPUTATIONS]
    read = [
        node
        for node in attributes
        if node.attr in _READS and ast.unparse(node.value).split(".")[-1] in ("dataset", "data")
    ]
    return len(computed) + len(read)


def test_pages_compute_nothing() -> None:
    folder = ROOT / "dashboard" / "pages"
    counts = {
        str(file.relative_to(folder)): computations(tree(file)) for file in folder.rglob("*.py")
    }
    assert {name: count for name, count in counts.items() if count} == {}


def test_a_sum_a_group_and_a_column_of_a_dataset_are_counted() -> None:
    assert computations(ast.parse("frame['bytes'].sum() + frame.groupby('ipu').size()")) == 2
    assert computations(ast.parse("report.dataset.column('steps', 'run'); read = data.value")) == 2
    assert (
        computations(ast.parse("sum([1]); frame.head(); box.value; report.dataset.has('x')")) == 0
    )
