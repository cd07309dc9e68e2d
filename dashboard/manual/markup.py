"""Markdown as the nodes of `static_elements`: no HTML of it is markup, no link leads outside."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from dashboard.elements.static_elements import Node

# HTML in it is text. What is not here is shown as what it holds.
_PARSER = MarkdownIt("commonmark", {"html": False}).enable("table")
_TAGS = {
    "paragraph": "p",
    "bullet_list": "ul",
    "ordered_list": "ol",
    "list_item": "li",
    "blockquote": "blockquote",
    "strong": "strong",
    "em": "em",
    "thead": "thead",
    "tbody": "tbody",
    "tr": "tr",
    "th": "th",
    "td": "td",
    "heading": "h4",
    "hr": "hr",
    "hardbreak": "br",
}
Linked = Callable[[str], str]  # from where a text leads to where that is here; empty for nowhere


@cache
def tree(text: str) -> SyntaxTreeNode:
    return SyntaxTreeNode(_PARSER.parse(text))


def nodes(text: str, words: Sequence[str], linked: Linked) -> list[Node]:
    """Return the elements of a text, these words marked in it."""
    expression = pattern(words)
    return [node for child in tree(text).children for node in _made(child, expression, linked)]


def pattern(words: Sequence[str]) -> re.Pattern[str] | None:
    """Return what finds any of these words; None without words."""
    return re.compile("|".join(map(re.escape, words)), re.IGNORECASE) if words else None


def _made(node: SyntaxTreeNode, expression: re.Pattern[str] | None, linked: Linked) -> list[Node]:
    if node.type in ("text", "code_inline", "fence", "code_block"):
        return _text(node, marked(node.content, expression))
    if node.type == "softbreak":
        return [" "]
    inside = [part for child in node.children for part in _made(child, expression, linked)]
    if node.type == "link":
        place = linked(str(node.attrs.get("href", "")))
        return [["link", {"href": place}, *inside]] if place else inside
    if node.type == "table":
        return [["div", {"className": "manual-table"}, ["table", {}, *inside]]]
    tag = "" if node.hidden else _TAGS.get(node.type, "")
    return [[tag, {}, *inside]] if tag else inside


def _text(node: SyntaxTreeNode, inside: list[Node]) -> list[Node]:
    if node.type == "text":
        return inside
    code: Node = ["code", {}, *inside]
    return [code] if node.type == "code_inline" else [["pre", {"tabIndex": 0}, code]]


def marked(text: str, expression: re.Pattern[str] | None) -> list[Node]:
    """Mark what was searched for in a text."""
    if expression is None:
        return [text]
    parts: list[Node] = []
    end = 0
    for hit in expression.finditer(text):
        parts += [text[end : hit.start()], ["mark", {}, hit[0]]]
        end = hit.end()
    return [part for part in (*parts, text[end:]) if part]


def plain(text: str) -> str:
    """Return a text without its marks: what a search looks at."""
    lines = re.sub(r"^\|[-| :]+\|$", "", text, flags=re.MULTILINE)
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", lines)
    words = re.sub(r"\*(\w[^*\n]*)\*", r"\1", words.replace("**", ""))
    return re.sub(r"\s+", " ", re.sub(r"`|^[>#*] |\|", " ", words, flags=re.MULTILINE)).strip()
