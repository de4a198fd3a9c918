"""Opt-outs that became known later: newer robots.txt files and records take published documents down, as any takedown."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from refinery_rights.opted_out import opted_out

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.store.taken_down import takedowns
from tests.chain import Chain, How, refined
from tests.commands import Refinery
from tests.stages.test_check_rights import landed, page, robots

pytestmark = pytest.mark.usefixtures("airflow_here")

A, B, C = "https://a.example", "https://b.example", "https://c.example"
CLOSED = "User-agent: GPTBot\nDisallow: /"
TAGGING, REJECTING = "{}", "{robots_txt: reject, noai: reject, tdm_reservation: reject}"
LATER, LATEST = "2026-11-21T12:00:00Z", "2026-11-22T12:00:00Z"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


def recipe(folder: Path, policy: str, name: str = "crawl") -> str:
    path = folder / f"{name}.yaml"
    stages = f"{{ingest: {{}}, check_rights: {policy}, extract: {{min_chars: 10}}, dedup_exact: {{}}}}"
    path.write_text(f"name: {name}\nstages: {stages}\n")
    return str(path)


def day(root: Path, name: str, policy: str, *records: bytes) -> Chain:
    folder = landed(root.parent / name, records)
    return refined(str(root), str(folder), How(recipe=recipe(root.parent, policy)))


def opt_outs(root: Path, *args: Any) -> dict[str, str]:
    return {each.url: each.signal.signal for each in opted_out(str(root), *args)}


def first_day(root: Path, policy: str = REJECTING) -> Chain:
    pages = [page(f"{A}/1", "<title>a</title>"), page(f"{B}/1", "<title>b</title>")]
    return day(root, "2026-11-20", policy, *_different(pages), robots(A, "User-agent: *\nAllow: /"))


def _different(pages: Sequence[bytes]) -> list[bytes]:
    """Pages with texts of their own, so that none is a duplicate."""
    words = b"A sentence of plain words."
    return [each.replace(words, b"The page nr %d has words..." % number) for number, each in enumerate(pages)]


def later(url: str, head: str = "", headers: str = "") -> bytes:
    """The page as it is a day later: its text is another."""
    return page(url, head, headers, LATER).replace(b"A sentence of", b"Later lines o")


def test_what_nothing_is_against_stays(root: Path) -> None:
    first_day(root)
    assert opt_outs(root) == {}


def test_a_newer_robots_txt_of_a_later_snapshot_is_against_earlier_documents(root: Path) -> None:
    first_day(root)
    day(root, "2026-11-21", REJECTING, robots(A, CLOSED, date=LATER), later(f"{C}/1"))
    assert opt_outs(root) == {f"{A}/1": "robots_txt"}


def test_robots_txt_files_that_never_landed_are_against_documents(root: Path, tmp_path: Path) -> None:
    first_day(root)
    archive = landed(tmp_path / "robots", [robots(B, CLOSED, date=LATER), robots(C, CLOSED, date=LATER)])
    assert opt_outs(root, "", [str(archive)]) == {f"{B}/1": "robots_txt"}
    newest = landed(tmp_path / "newest", [robots(B, "", "404 Not Found", date=LATEST)])
    assert opt_outs(root, "", [str(archive), str(newest)]) == {}


def test_an_archive_without_a_robots_txt_is_refused_by_name(root: Path, tmp_path: Path) -> None:
    first_day(root)
    archive = landed(tmp_path / "pages", [page(f"{A}/1")])
    with pytest.raises(RecipeError, match=str(archive)):
        opt_outs(root, "", [str(archive)])


@pytest.mark.parametrize(
    ("head", "headers", "signal"),
    [
        ('<meta name="robots" content="noai">', "", {f"{A}/1": "noai"}),
        ("", "TDM-Reservation: 1", {f"{A}/1": "tdm_reservation"}),
        ("", "X-Robots-Tag: noindex", {}),
    ],
)
def test_a_newer_record_of_the_page_is_against_the_older_one(
    head: str, headers: str, signal: dict[str, str], root: Path
) -> None:
    first_day(root)
    day(root, "2026-11-21", REJECTING, later(f"{A}/1?utm_source=x", head, headers), later(f"{C}/1"))
    assert opt_outs(root) == signal


def test_what_is_no_longer_reserved_stays(root: Path) -> None:
    first_day(root)
    day(root, "2026-11-21", REJECTING, later(f"{A}/1", headers="TDM-Reservation: 1"), later(f"{C}/1"))
    newest = page(f"{A}/1", date=LATEST).replace(b"A sentence of", b"Other lines o")
    day(root, "2026-11-22", REJECTING, newest)
    assert opt_outs(root) == {}


def test_a_header_of_an_unchanged_page_is_read_though_the_page_is_not(root: Path) -> None:
    first_day(root)
    again = _different([page(f"{A}/1", "<title>a</title>", "X-Robots-Tag: noai", LATER)])
    second = day(root, "2026-11-21", REJECTING, *again, later(f"{C}/1"))
    assert second.manifest("ingest").rejected == {"ingest:unchanged": 1}
    assert opt_outs(root) == {f"{A}/1": "noai"}


def test_a_robots_txt_that_opened_again_is_not_against_what_it_closed(root: Path, tmp_path: Path) -> None:
    day(root, "2026-11-20", TAGGING, page(f"{A}/1"), robots(A, CLOSED))
    strict = recipe(tmp_path, REJECTING, "strict")
    assert opt_outs(root, strict) == {f"{A}/1": "robots_txt"}
    assert opt_outs(root, strict, [str(landed(tmp_path / "newest", [robots(A, "", date=LATEST)]))]) == {}


def test_an_older_record_is_not_against_a_newer_document(root: Path) -> None:
    """The newer one is of a recipe without `check_rights`, which does not know what it says."""
    closed = page(f"{A}/1", '<meta name="robots" content="noai">').replace(b"A sentence of", b"First lines o")
    day(root, "2026-11-20", REJECTING, closed, later(f"{C}/1"))
    plain = root.parent / "plain.yaml"
    plain.write_text("name: plain\nstages: {ingest: {}, extract: {min_chars: 10}, dedup_exact: {}}\n")
    refined(str(root), str(landed(root.parent / "2026-11-21", [later(f"{A}/1")])), How(recipe=str(plain)))
    assert opt_outs(root) == {}


def test_a_robots_txt_that_did_not_change_is_in_force_the_next_day(root: Path) -> None:
    first_day(root)
    second = day(root, "2026-11-21", REJECTING, robots(A, "User-agent: *\nAllow: /", date=LATER), later(f"{A}/2"))
    assert [row["robots_txt"] for row in second.rows("extract", columns=["robots_txt"])] == ["allowed"]


def test_a_stricter_policy_is_against_what_was_tagged(root: Path, tmp_path: Path) -> None:
    tagged = later(f"{A}/2", '<meta name="robots" content="noai">')
    day(root, "2026-11-20", TAGGING, tagged, later(f"{C}/1"))
    with pytest.raises(RecipeError, match="--recipe"):
        opted_out(str(root))
    assert opt_outs(root, recipe(tmp_path, REJECTING, "strict")) == {f"{A}/2": "noai"}


def test_a_root_without_rights_needs_a_policy(root: Path) -> None:
    with pytest.raises(RecipeError, match="--recipe"):
        opted_out(str(root))


def test_the_command_shows_then_records_and_then_has_nothing_left_to_record(
    root: Path, tmp_path: Path, refinery: Refinery
) -> None:
    first_day(root)
    archive = landed(tmp_path / "robots", [robots(A, CLOSED, date=LATER)])
    command = ("takedown", str(root), "--rights", "--robots", str(archive))
    shown = refinery(*command, "--dry-run")
    assert (shown.returncode, takedowns(str(root))) == (0, [])
    assert f"{A}/1" in shown.stdout
    assert "Disallow: /" in shown.stdout
    done = refinery(*command, "--json")
    assert done.returncode == 0
    facts = json.loads(done.stdout)
    assert [each["url"] for each in facts["opted_out"]] == [f"{A}/1"]
    (recorded,) = takedowns(str(root))
    assert recorded.entries == (("url", f"{A}/1"),)
    assert "robots_txt 1" in recorded.reason
    again = refinery(*command)
    assert (again.returncode, len(takedowns(str(root)))) == (0, 1)
    open_again = landed(tmp_path / "open", [robots(A, "", date=LATEST)])
    calm = refinery(*command, "--robots", str(open_again))
    assert calm.returncode == 0
    assert "no published document" in calm.stdout


def test_options_of_rights_need_it(root: Path, refinery: Refinery) -> None:
    assert refinery("takedown", str(root), "--robots", "x", "--url", "https://a.example").returncode == 78
    assert refinery("takedown", str(root), "--rights", "--undo").returncode == 78
