"""The site of `make docs`: its list of pages, and the commands that its pages name."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest

from cli.main import tilescope
from tools.site_pages import ELSEWHERE, on_page_markdown

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
PAGES = ("docs/tutorial.md", "docs/how-to.md", "docs/how-the-model-works.md", "AGENTS.md")


def listed(nav: Any) -> list[str]:
    """List the pages of a navigation, its sections opened."""
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    return [page for part in parts for page in listed(part)]


def test_each_page_is_in_the_navigation_once() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    there = {file.relative_to(ROOT / "docs").as_posix() for file in (ROOT / "docs").rglob("*.md")}
    pages = listed(settings["nav"])
    assert sorted(pages) == sorted(there | set(ELSEWHERE))
    assert all((ROOT / source).is_file() for source in ELSEWHERE.values())


def commands() -> list[str]:
    texts = [(ROOT / page).read_text(encoding="utf-8") for page in PAGES]
    found = re.findall(r"(?:`|^ {4}|^\$ )(tilescope [a-z].*?)(?:`|$)", "\n".join(texts), re.M)
    return sorted(set(found))


@pytest.mark.parametrize("line", commands())
def test_each_command_that_a_page_names_takes_its_options(line: str) -> None:
    words = shlex.split(line.partition(" > ")[0].replace("`", ""))[1:]
    command: click.Command = tilescope
    context = click.Context(tilescope)
    while isinstance(command, click.Group) and words and words[0][0] != "-":
        _, command, words = command.resolve_command(context, words)  # type: ignore[assignment]
        context = click.Context(command, parent=context)
    if words:  # else the command is named alone
        command.make_context(command.name, words, parent=context)


def test_links_to_files_that_are_no_pages_are_their_names() -> None:
    page = type("Page", (), {"file": type("File", (), {"src_uri": "agents.md"})})
    text = "[a](docs/cli.md#x) [b](CONTRIBUTING.md) [c](action.yml) [d](nowhere.md) [e][f] `[g][h]`"
    assert on_page_markdown(text, page, {}, []) == (
        "[a](cli.md#x) [b](contributing.md) c [d](nowhere.md) [e]\\[f] `[g][h]`"
    )
