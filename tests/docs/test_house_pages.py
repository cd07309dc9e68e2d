"""The pages about the house itself: what they name is there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from pva import schema
from pva.version import VERSION
from tests.test_architecture import PACKAGES

ROOT = Path(__file__).parents[2]
PAGES = ("docs/architecture.md", "docs/style.md", "docs/versions.md", "SECURITY.md")
LINKS = (*(file.relative_to(ROOT).as_posix() for file in sorted((ROOT / "docs").rglob("*.md"))),
         "SECURITY.md", "README.md", "CONTRIBUTING.md", "AGENTS.md", "llms.txt")  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_each_path_that_a_page_names_exists(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    paths = re.findall(r"`((?:[\w.-]+/)+[\w.-]+)`", text)
    own = [path for path in paths if path.split("/")[0] in {p.name for p in ROOT.iterdir()}]
    assert [path for path in own if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", LINKS)
def test_each_link_of_a_page_leads_to_a_file(page: str) -> None:
    text = re.sub(r"(?ms)^```.*?^```", "", (ROOT / page).read_text(encoding="utf-8"))
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    assert [name for name in targets if not ((ROOT / page).parent / name).exists()] == []


def test_the_architecture_has_a_row_for_each_package() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    assert [name for name in PACKAGES if f"| `{name}` |" not in text] == []


def test_the_glossary_has_each_region_and_a_term_once() -> None:
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    terms = [row.split("|")[1].strip() for row in text.splitlines() if row.startswith("| ")]
    terms = [term for term in terms if term not in ("term", "---")]
    assert sorted(terms) == sorted(set(terms))
    region = next(row for row in text.splitlines() if row.startswith("| region |"))
    assert all(
        name.replace("nonInterleaved", "non-interleaved") in region for name in schema.REGIONS
    )


def test_the_versions_page_names_the_number_of_each_format() -> None:
    text = (ROOT / "docs/versions.md").read_text(encoding="utf-8")
    for page, key in (("report-format.md", "formatVersion"), ("trace-format.md", "user_version")):
        assert key in (ROOT / "docs" / page).read_text(encoding="utf-8") and key in text


def test_the_changelog_keeps_its_form() -> None:
    """Unreleased, then releases with their days, the newest first; none above the version."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    heads = re.findall(r"^## (.*)$", text, re.MULTILINE)
    releases = [head for head in heads if head != "Unreleased"]
    assert heads[len(heads) - len(releases) :] == releases
    forms = [re.fullmatch(r"(\d+)\.(\d+)\.(\d+) - \d{4}-\d\d-\d\d", head) for head in releases]
    numbers = [tuple(map(int, form.groups())) for form in forms if form]
    assert len(numbers) == len(releases) and numbers == sorted(set(numbers), reverse=True)
    assert numbers[0] <= tuple(map(int, VERSION.split(".")))


def test_the_version_stands_in_one_place() -> None:
    """The build reads it there; reports, the citation and the site do not say it again."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"] and "version" in project["project"]["dynamic"]
    assert project["tool"]["hatch"]["version"]["path"] == "pva/version.py"
    sources = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    stated = [file.name for file in (*sources, ROOT / "CITATION.cff", ROOT / "mkdocs.yml")
              if f'"{VERSION}"' in file.read_text(encoding="utf-8")]  # fmt: skip
    assert stated == ["version.py"]
    assert "version:" not in (ROOT / "CITATION.cff").read_text("utf-8").replace("cff-version:", "")
