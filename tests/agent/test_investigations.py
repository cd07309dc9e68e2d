"""Five questions that an agent answers through `tilescope mcp`, by the SDK's own client.

One server over standard input and output answers all; each number that ends an investigation is
that of the command line.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytest.importorskip("mcp")
import anyio
import onnx
from mcp import Client, StdioServerParameters

from cli.main import tilescope
from tests.builders import small_report, write_report
from tests.popart.models import model, node

Ask = Callable[..., Awaitable[Any]]
TOOLS = ("open", "overview", "insights", "tables", "sql", "compare", "explain", "simulate")
DASHBOARD = "http://127.0.0.1:8050/"


async def why_does_it_not_fit(ask: Ask) -> Any:
    assert (await ask("overview", report="full"))["fits"] is False
    first = (await ask("insights", report="full", about="memory"))["rows"][0]
    assert (first["rule"], first["severity"]) == ("does_it_fit", "problem")
    return (await ask("explain", report="full", figure="largest_tile"))["rows"]


async def what_regressed(ask: Ask) -> Any:
    figures = (await ask("compare", before="run", after="slow"))["rows"]
    assert {"total_cycles", "run_cycles"} & {row["figure"] for row in figures}
    return figures


async def which_layer_takes_the_cycles(ask: Ask) -> Any:
    listed = (await ask("tables", words="cycles layer"))["rows"]
    name = next(row["name"] for row in listed if row["name"] == "cycles_by_layer")
    return (await ask("tables", report="run", name=name, where=["share > 10 %"], sort="cycles"))[
        "rows"
    ]


async def what_is_live_at_the_peak(ask: Ask) -> Any:
    step = await ask("explain", report="run", figure="max_live")
    large = await ask("sql", report="run", query="select sum(bytes) as bytes from variables")
    return step["value"], step["rows"], large["rows"]


async def what_would_this_model_cost(ask: Ask) -> Any:
    return await ask("simulate", model="model.onnx", target="tiny")


INVESTIGATIONS = (why_does_it_not_fit, what_regressed, which_layer_takes_the_cycles,
                  what_is_live_at_the_peak, what_would_this_model_cost)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a report, one of it slower, one of it on tiles that are too small, and a model."""
    here = tmp_path_factory.mktemp("asked")
    runs = dict(small_report().table("runs"))
    target = dict(small_report().table("target")) | {"bytes_per_tile": [600]}
    write_report(here / "run")
    write_report(here / "slow", small_report(runs=runs | {"cycles": 2 * runs["cycles"]}))
    write_report(here / "full", small_report(target=target))
    proto = model([node("Relu", "x", "y")], {"x": (4, 8)}, {"y": (4, 8)})
    onnx.save(proto, here / "model.onnx")
    return here


@pytest.fixture(scope="module")
def answers(folder: Path) -> dict[str, Any]:
    """Ask everything, through one server."""
    found: dict[str, Any] = {"texts": []}

    async def investigate() -> None:
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "cli.main", "mcp", "."], cwd=folder,
            env={"PYTHONPATH": str(Path(__file__).parents[2])},
        )  # fmt: skip
        async with Client(server) as client:

            async def ask(tool: str, **arguments: Any) -> Any:
                result = await client.call_tool(tool, arguments)
                text = result.content[0].text
                assert not result.is_error, text
                found["texts"].append(text)
                return json.loads(text)

            found["tools"] = (await client.list_tools()).tools
            found["open"] = await ask("open")
            for one in INVESTIGATIONS:
                found[one.__name__] = await one(ask)
            refused = await client.call_tool("overview", {"report": "../etc"})
            found["refused"] = refused.is_error, refused.content[0].text

    anyio.run(investigate)
    return found


def command(folder: Path, *call: str) -> Any:
    words = [str(folder / word) if word in ("run", "slow", "full") else word for word in call]
    result = CliRunner().invoke(tilescope, [*words, "--json"])
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_every_tool_has_a_schema_of_its_arguments(answers: dict[str, Any]) -> None:
    tools = {tool.name: tool for tool in answers["tools"]}
    assert tuple(tools) == TOOLS
    for tool in tools.values():
        assert tool.description and "max_bytes" in tool.input_schema["properties"]
        described = [p for name, p in tool.input_schema["properties"].items() if name != "report"]
        assert all(part.get("description") for part in described)


def test_reports_are_listed_by_the_keys_of_the_dashboard(answers: dict[str, Any]) -> None:
    rows = answers["open"]["rows"]
    assert [row["report"] for row in rows] == ["full", "run", "slow"]
    assert rows[1]["link"] == f"{DASHBOARD}summary?report=run"


def test_what_lacks_on_the_fullest_tile_is_that_of_the_command(
    answers: dict[str, Any], folder: Path
) -> None:
    shown = command(folder, "show", "fullest_tiles", "full", "--count", "10")["rows"]
    assert answers["why_does_it_not_fit"] == shown
    assert shown[0]["free"] < 0


def test_what_regressed_is_that_of_the_command(answers: dict[str, Any], folder: Path) -> None:
    shown = {
        row["figure"]: row["change"] for row in command(folder, "compare", "run", "slow")["figures"]
    }
    found = {row["figure"]: row["change"] for row in answers["what_regressed"]}
    assert found == {name: change for name, change in shown.items() if change}
    assert found["run_cycles"] == 1024  # two runs of 512 cycles take twice as long


def test_the_layer_is_that_of_the_command(answers: dict[str, Any], folder: Path) -> None:
    call = ("show", "cycles_by_layer", "run", "--where", "share > 10 %", "--sort", "cycles")
    shown = command(folder, *call)["rows"]
    found = answers["which_layer_takes_the_cycles"]
    assert [row["cycles"] for row in found] == [row["cycles"] for row in shown]
    assert [row["layer"] for row in found] == [f"⟦{row['layer']}⟧" for row in shown]


def test_what_is_live_is_that_of_the_command(answers: dict[str, Any], folder: Path) -> None:
    peak, rows, total = answers["what_is_live_at_the_peak"]
    shown = command(folder, "show", "live_at_peak", "run")["rows"]
    assert sum(row["bytes"] for row in shown) == peak == sum(row["bytes"] for row in rows)
    bytes_of_all = command(folder, "sql", "run", "select sum(bytes) as bytes from variables")
    assert total == bytes_of_all["rows"]


def test_the_cost_of_the_model_is_that_of_its_report(answers: dict[str, Any], folder: Path) -> None:
    found = answers["what_would_this_model_cost"]
    figures = {row["figure"]: row["value"] for row in found["rows"]}
    shown = command(folder, "info", str(folder / found["path"]))["run"]
    assert figures["run_cycles"] == shown["cycles"] > 0
    assert found["proof"]["simulated_by"].startswith("tilescope simulate model.onnx --target tiny")


def test_answers_are_short_and_carry_their_proof(answers: dict[str, Any]) -> None:
    assert len(answers["texts"]) >= 10
    for text in answers["texts"]:
        assert len(text.encode()) <= 4096
        found = json.loads(text)
        assert found["proof"]["query"].startswith("tilescope ")
        assert found["proof"]["link"].startswith(DASHBOARD)
        assert "left_out" in found


def test_what_lies_outside_is_refused_in_one_line(answers: dict[str, Any]) -> None:
    is_error, text = answers["refused"]
    assert is_error and text.count("\n") == 0 and "not there" in text
