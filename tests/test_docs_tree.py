"""The shape of the documentation: a small tree of how-to pages, each found from the first page, and decisions by state."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
DECISIONS = DOCS / "decisions"
OVERTAKEN = DECISIONS / "overtaken"

MOST = 38
"""How-to pages. One more is a section of a page that answers the same wish."""

PAGES = sorted(DECISIONS.rglob("[0-9]*.md"))

STATE = re.compile(
    r"State: (?:(?P<rules>rules)|rules in part, see (?P<part>.+)|overtaken by (?P<by>\[\d{4}\]\(\.\./\d{4}-[\w-]+\.md\)))"
)


def linked(page: Path) -> set[Path]:
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    return {(page.parent / link).resolve() for link in links if "://" not in link}


def state(page: Path) -> re.Match[str] | None:
    """Return what a page of a decision says of its state, in its third line."""
    return STATE.fullmatch(page.read_text(encoding="utf-8").split("\n")[2])


def test_how_to_pages_are_few_and_in_folders() -> None:
    pages = [path.relative_to(DOCS / "how-to") for path in DOCS.glob("how-to/**/*.md")]
    assert 0 < len(pages) <= MOST
    assert {len(page.parts) for page in pages} == {2}


def test_every_page_is_found_from_the_first_one() -> None:
    found = linked(DOCS / "README.md")
    pages = [path for path in DOCS.rglob("*.md") if DECISIONS not in path.parents and path != DOCS / "README.md"]
    assert [str(page) for page in pages if page.resolve() not in found] == []
    assert DECISIONS / "README.md" in found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_decision_says_whether_it_rules(page: Path) -> None:
    said = state(page)
    assert said, f"the third line of {page.name} says `State: ...`"
    assert (page.parent == OVERTAKEN) is bool(said["by"])
    assert not said["part"] or re.match(r"\[\d{4}\]\(", said["part"])


def test_the_list_of_decisions_has_those_that_rule_and_no_other() -> None:
    text = (DECISIONS / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[\d+\]\((\S+)\) \| (.*) \|$", text, re.MULTILINE)
    ruling = {page.name: state(page) for page in PAGES if page.parent == DECISIONS}
    assert sorted(name for name, _ in listed) == sorted(ruling)
    in_part = {name for name, said in ruling.items() if said and said["part"]}
    assert {name for name, title in listed if title.endswith("(in part)")} == in_part
