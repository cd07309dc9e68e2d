"""Hooks of `make docs`: pages that stand elsewhere in the repository, and links out of the site."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
# A page of the site, and the file of the repository that it shows.
ELSEWHERE = {
    "changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md", "agents.md": "AGENTS.md",
}  # fmt: skip
_LINK = re.compile(r"\[([^\]]*)\]\(([^)#:\s]+)(#[^)\s]*)?\)")
# Code as it is, or the place between two indexes, [tile][step], which would be read as a link.
_INDEXES = re.compile(r"```.*?```|`[^`\n]*`|\]\[", re.DOTALL)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that stand elsewhere."""
    from mkdocs.structure.files import File

    for name, source in ELSEWHERE.items():
        content = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Lead links to files that are no pages of the site to their names alone."""
    name = page.file.src_uri
    folder = Path(ELSEWHERE.get(name, f"docs/{name}")).parent
    pages = {ROOT / source: page for page, source in ELSEWHERE.items()}

    def linked(match: re.Match[str]) -> str:
        text, target, place = match[1], match[2], match[3] or ""
        path = (ROOT / folder / target).resolve()
        if path in pages:
            return f"[{text}]({pages[path]}{place})"
        if path.is_relative_to(ROOT / "docs") and path.is_file():
            up = "../" * name.count("/")
            return f"[{text}]({up}{path.relative_to(ROOT / 'docs').as_posix()}{place})"
        return text if path.exists() else match[0]

    plain = _INDEXES.sub(lambda match: "]\\[" if match[0] == "][" else match[0], markdown)
    return _LINK.sub(linked, plain)
