"""The search in the documentation: those sections that have all words, by their titles first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from dashboard.manual.chapters import Chapter, Section
from dashboard.manual.markup import plain

AROUND = 70  # letters of a section before and after what was found


@dataclass(frozen=True, slots=True)
class Hit:
    """A section that has what was searched for, and the words around it."""

    chapter: Chapter
    section: Section
    context: str


def words_of(text: str) -> tuple[str, ...]:
    """Return the words that are searched for, each once."""
    return tuple(dict.fromkeys(text.lower().split()))


@cache
def _plain(text: str) -> str:
    return plain(text)


def search(chapters: Sequence[Chapter], text: str) -> list[Hit]:
    """List the sections that have all words of a text, in any case; those of a title first."""
    words = words_of(text)
    hits: list[tuple[int, Hit]] = []
    for chapter in chapters if words else ():
        for section in chapter.sections:
            title = f"{chapter.title} {section.title}".lower()
            body = _plain(section.text)
            lower = body.lower()
            if all(word in title or word in lower for word in words):
                missing = sum(word not in title for word in words)
                texts = (" ".join(words), *words)
                hits.append((missing, Hit(chapter, section, _context(body, lower, texts))))
    hits.sort(key=lambda pair: pair[0])
    return [hit for _, hit in hits]


def _context(body: str, lower: str, texts: Sequence[str]) -> str:
    """Cut out what stands around the first of the texts that is there."""
    middle = next((place for text in texts if (place := lower.find(text)) >= 0), 0)
    begin, end = max(middle - AROUND, 0), min(middle + 2 * AROUND, len(body))
    begin = body.rfind(" ", 0, begin) + 1 if begin else 0
    end = end if end == len(body) else max(body.rfind(" ", begin, end), middle + 1)
    return f"{'… ' if begin else ''}{body[begin:end]}{' …' if end < len(body) else ''}"
