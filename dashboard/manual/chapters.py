"""The chapters: a page of the dashboard each, what all have in common, and the reference.

A page declares its chapter and the meaning of its controls, a column has its own (`Column.note`).
The reference is the Markdown of the project; in a wheel it lies in `reference` beside this file,
in a checkout it is `docs`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dashboard.declared import Declaration
from dashboard.keys import SHORTCUTS

TEXTS = Path(__file__).parent / "texts"
_PACKED = Path(__file__).parent / "reference"
REFERENCE = _PACKED if _PACKED.is_dir() else Path(__file__).parents[2] / "docs"
PAGES, OF_ALL, MORE = "Pages", "Everywhere", "Reference"
# Name of a chapter and its title, by group; a page's chapter has the name and title of the page.
EVERYWHERE = {"links": "Links, saving and units", "keys": "Keys"}
DOCUMENTS = {
    "summary-text": ("The profile summary", "summary.md"),
    "lightweight-profiling": ("Lightweight profiling", "lightweight-profiling.md"),
    "tracing": ("Tracing the host", "tracing.md"),
    "reading-traces": ("Reading host traces", "reading-traces.md"),
    "cli": ("The command line", "cli.md"),
    "analyses": ("Analyses", "analyses.md"),
    "objects": ("Objects in Python", "objects.md"),
    "report-format": ("What a report holds", "report-format.md"),
    "limits": ("What is not there", "limits.md"),
}
_NAMES = {file: name for name, (_, file) in DOCUMENTS.items()}


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the Markdown below it; `name` is unique in its chapter."""

    name: str
    title: str
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Chapter:
    """Some sections; `path` is the page it is about, if it is about one."""

    name: str
    title: str
    group: str
    sections: tuple[Section, ...]
    path: str = ""

    @property
    def is_long(self) -> bool:
        """Return whether it is shown a section at a time."""
        return sum(len(section.text) for section in self.sections) > 16_000


def name_of(path: str) -> str:
    """Return the name of the chapter about a page."""
    return path.strip("/") or "start"


def page_chapter(page: Declaration) -> Chapter:
    """Return the chapter about a page: its text, its controls, its columns."""
    controls = _table(("Control", "What it does"), page.controls.values())
    parts = [page.chapter, f"## Controls\n\n{controls}" if page.controls else ""]
    for heading, columns in page.tables:
        rows = [(column.title or "(first)", column.note) for column in columns]
        parts.append(f"## {heading}\n\n{_table(('Column', 'Meaning'), rows)}")
    text = tuple(sections("\n\n".join(parts), page.title))
    return Chapter(name_of(page.path), page.title, PAGES, text, page.path)


def _table(heads: tuple[str, str], rows: object) -> str:
    lines = [heads, ("---", "---"), *rows]  # type: ignore[misc]
    return "\n".join(f"| {first} | {second} |" for first, second in lines)


def common_chapters(pages: Sequence[Declaration]) -> tuple[Chapter, ...]:
    """Return the chapters that are about no page; the keys of pages come with their titles."""
    links = (TEXTS / "links.md").read_text(encoding="utf-8")
    opened = [(f"`g` `{page.letter}`", f"{page.title}: `{page.path}`") for page in pages]
    rows = {"Pages": opened} | {
        where: [(f"`{key}`", does) for key, does in keys] for where, keys in SHORTCUTS.items()
    }
    keys = "\n\n".join(
        f"## {where}\n\n{_table(('Key', 'What it does'), entries)}"
        for where, entries in rows.items()
    )
    texts = {"links": links, "keys": "All are in the sheet that `?` shows.\n\n" + keys}
    return (
        *(
            Chapter(name, title, OF_ALL, tuple(sections(texts[name], title)))
            for name, title in EVERYWHERE.items()
        ),
        *(
            Chapter(name, title, MORE, tuple(sections(_read(file), title)))
            for name, (title, file) in DOCUMENTS.items()
        ),
    )


def _read(file: str) -> str:
    """Read a document; its first heading is the title of the chapter."""
    text = (REFERENCE / file).read_text(encoding="utf-8")
    return re.sub(r"\A# .*\n", "", text)


def sections(text: str, title: str) -> Iterator[Section]:
    """Cut Markdown at its headings of the second and third level, but for those in code."""
    counts: dict[str, int] = {}
    heading, level, lines, code = title, 1, list[str](), False
    for line in (*text.splitlines(), "## "):
        code ^= line.startswith("```")
        match = None if code else re.match(r"(#{2,3}) (.*)", line)
        if not match:
            lines.append(line)
            continue
        body = "\n".join(lines).strip()
        if body or level > 1:
            yield Section(_slug(heading, counts), heading, level, body)
        heading, level, lines = match[2].strip("` "), len(match[1]), []


def _slug(heading: str, counts: dict[str, int]) -> str:
    name = re.sub(r"[^a-z0-9_]+", "-", heading.lower()).strip("-") or "part"
    counts[name] = counts.get(name, 0) + 1
    return name if counts[name] == 1 else f"{name}-{counts[name]}"


def place_of(target: str, chapter: str) -> tuple[str, str] | None:
    """Return the chapter and section that a link leads to; None when it leads outside."""
    file, _, part = target.partition("#")
    if re.match(r"[a-z]+:", target):
        return None
    name = _NAMES.get(file.rpartition("/")[2]) if file else chapter
    return (name, part.lower()) if name else None
