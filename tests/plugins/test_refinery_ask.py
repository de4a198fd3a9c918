"""Pages of questions: each that there is refuses who lacks its role, and every page has the box that leads to `why`."""

import html
import re
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.ask.known import questions
from pipeline_tasks.ask.question import Role, params_of, question_of
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.store import access_log
from pipeline_tasks.store.reading import read_manifest, read_shards
from tests.markup import assert_inert
from tests.small_root import DAYS, RECIPE, SmallRoot

AIRFLOW = {Role.VIEWER: "VIEWER", Role.CURATOR: "USER", Role.STEWARD: "OP"}
ASKED = {name: question_of(entry) for name, entry in questions().items() if entry.is_question}
SCRIPT = "<script>alert(1)</script>"


def slug_of(name: str) -> str:
    """A question as addresses have it."""
    return name.replace(" ", "-")


@pytest.fixture
def root(small_root: SmallRoot) -> Path:
    return Path(small_root.root)


@pytest.fixture
def become(app: Any) -> Any:
    """Ask in a role from now on."""
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from airflow.api_fastapi.core_api.security import get_user

    def become(role: Role) -> None:
        app.dependency_overrides[get_user] = lambda: SimpleAuthManagerUser(username=role, role=AIRFLOW[role])

    return become


def rows(root: Path, stage: str, part: str) -> list[dict[str, Any]]:
    version = version_log.current(str(root), RECIPE, DAYS[1])
    shards = getattr(read_manifest(str(root), version.manifests[stage]), part)
    return [row for batch in read_shards(str(root), shards) for row in batch.to_pylist()]


def test_each_question_refuses_who_lacks_its_role(visitor: Any, become: Any, root: Path) -> None:
    order = list(Role)
    for name, question in ASKED.items():
        asked = {param.name: "example" for param in params_of(question) if param.is_required}
        for role in Role:
            become(role)
            for given in ({}, asked):
                shown = visitor.get(f"/ask/{slug_of(name)}", params=given)
                is_held = order.index(role) >= order.index(question.role)
                assert (name, role, shown.status_code == 403) == (name, role, not is_held)
                assert is_held or "Ask for a role with that right." in shown.text


def test_the_index_lists_what_a_user_may_ask(visitor: Any, become: Any) -> None:
    for role in Role:
        become(role)
        listed = set(re.findall(r'href="/refinery/ask/([\w-]+)"', visitor.get("/ask").text))
        held = {slug_of(name) for name, each in ASKED.items() if [*Role].index(each.role) <= [*Role].index(role)}
        assert (role, listed) == (role, held)


def test_a_page_shows_a_form_the_answer_and_the_command(visitor: Any, root: Path) -> None:
    row = rows(root, "extract", "rejects")[0]
    form = visitor.get("/ask/why").text
    assert 'name="what"' in form
    assert 'name="most_bytes"' not in form
    page = visitor.get("/ask/why", params={"what": row["url"]})
    assert page.status_code == 200
    assert row["reason"] in page.text
    assert html.escape(f"refinery why {row['url']} {root}") in page.text
    links = {html.unescape(link) for link in re.findall(r'href="/refinery(/(?:document|snapshot)/[^"]+)"', page.text)}
    assert links
    for link in links:
        assert (link, visitor.get(link).status_code) == (link, 200)
    *_, look = access_log.looks(str(root))
    before = [each for each in access_log.looks(str(root)) if each.of.get("name") == "why"]
    assert before[-1].rows > 0
    assert row["id"] in before[-1].documents
    assert row["url"] not in str(before[-1])
    assert look.what in ("why", "document", "snapshot")  # links are followed in any order


def test_a_curator_sees_kept_pages_and_cannot_tell_a_rejected_one_from_none(
    visitor: Any, become: Any, root: Path
) -> None:
    become(Role.CURATOR)
    kept, gone = rows(root, "dedup_minhash", "shards")[0], rows(root, "extract", "rejects")[0]
    assert kept["url"] in visitor.get("/ask/why", params={"what": kept["id"]}).text
    known, none = (visitor.get("/ask/why", params={"what": id_}).text for id_ in (gone["id"], "f" * 32))
    assert known.replace(gone["id"], "X") == none.replace("f" * 32, "X")


def test_what_is_wrong_is_said_and_nothing_runs(visitor: Any) -> None:
    wrong = visitor.get("/ask/keep-access", params={"since": SCRIPT})
    assert (wrong.status_code, "a day, as 2026-11-26" in wrong.text) == (422, True)
    assert_inert(wrong.text, SCRIPT)
    assert_inert(visitor.get("/ask/why", params={"what": SCRIPT}).text, SCRIPT)
    for name in ("look-lineage", "look-versions", "keep-upgrade"):
        wrong = visitor.get(f"/ask/{name}", params={"recipe": ".."})
        assert (name, wrong.status_code, "recipe must be a word" in wrong.text) == (name, 422, True)
    for name in ("run", "nothing"):
        assert visitor.get(f"/ask/{name}").status_code == 404


@pytest.mark.parametrize("name", [name for name in ASKED if "recipe" in {each.name for each in params_of(ASKED[name])}])
def test_a_question_of_a_recipe_has_a_page_of_each_and_of_no_other(
    name: str, visitor: Any, become: Any, root: Path
) -> None:
    for role in Role:
        become(role)
        is_held = [*Role].index(role) >= [*Role].index(ASKED[name].role)
        shown = visitor.get(f"/ask/{slug_of(name)}/{RECIPE}")
        assert (role, shown.status_code == 403) == (role, not is_held)
    of_it = f"--recipe {RECIPE}", f'action="/refinery/ask/{slug_of(name)}/{RECIPE}"'
    assert any(each in shown.text for each in of_it), "it is asked, or asks for more"
    assert 'name="recipe"' not in shown.text
    assert visitor.get(f"/ask/{slug_of(name)}/nothing").status_code == 404
    assert visitor.get(f"/ask/{slug_of(name)}/{RECIPE}/{DAYS[1]}/more").status_code == 404


@pytest.mark.parametrize(
    ("address", "now"),
    [
        (f"/lineage/{RECIPE}/{DAYS[1]}", f"/ask/look-lineage/{RECIPE}/{DAYS[1]}"),
        (f"/breakdown/{RECIPE}/{DAYS[1]}?by=a%26b", f"/ask/look-breakdown/{RECIPE}/{DAYS[1]}?by=a%26b"),
        (f"/similar/{RECIPE}?doc=12", f"/ask/look-similar/{RECIPE}?doc=12"),
    ],
)
def test_addresses_that_pages_had_lead_to_their_questions(visitor: Any, address: str, now: str) -> None:
    moved = visitor.get(address, follow_redirects=False)
    assert (moved.status_code, moved.headers["location"]) == (303, f"/refinery{now}")


def test_old_names_of_questions_and_params_are_understood(visitor: Any) -> None:
    assert visitor.get("/ask/versions").text == visitor.get("/ask/look-versions").text
    for name in ("who", "by"):
        assert 'name="who" size="20" maxlength="4096" value="ada"' in visitor.get(f"/ask/access?{name}=ada").text
    assert f'value="{"1" * 32}"' in visitor.get(f"/ask/look-similar?doc={'1' * 32}").text


def test_a_look_has_the_names_of_what_is_shown(visitor: Any, root: Path) -> None:
    assert visitor.get("/ask/look-breakdown", params={"by": "site"}).status_code == 200
    *_, look = access_log.looks(str(root))
    assert (look.what, look.of["name"], look.of["recipe"]) == ("breakdown", "look-breakdown", RECIPE)
    assert look.of["snapshot"] in DAYS


def test_every_page_has_the_box(visitor: Any) -> None:
    for page in ("/page", "/ask", "/sources", f"/snapshot/{RECIPE}/{DAYS[1]}"):
        assert 'action="/refinery/ask/why"' in visitor.get(page).text
