"""`docs/report-format.md` is what the schema says."""

from pathlib import Path

from pva import schema
from pva.formats import describe

DOCUMENT = Path(__file__).parents[2] / "docs" / "report-format.md"


def test_the_document_is_the_generators_output() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == describe.text()


def test_every_table_and_array_is_described() -> None:
    text = describe.text()
    assert [t.name for t in schema.TABLES if f"### {t.name}\n" not in text] == []
    assert [a.name for a in schema.ARRAYS if f"| {a.name} |" not in text] == []
