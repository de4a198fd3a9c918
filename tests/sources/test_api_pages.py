"""Each way of paging gives each record once, and an end that nothing proves is refused by name."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from refinery_sources.api.paging import links_of, next_link
from refinery_sources.recipe import parse_source

from pipeline_tasks.errors import ContractError, RecipeError, SourceBusy
from tests.sources.api_pulls import facts_of, ids_of, landed_in, pulled, rows_of
from tests.sources.api_server import STYLES, Api, Asked, Reply, item, items, page_of, paged


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("count", [1, 5, 12, 35])
def test_every_way_of_paging_gives_each_record_once(api: Api, tmp_path: Path, style: str, count: int) -> None:
    """Of a last page that is full, of one that is not, and of a single one whose next is absent, which needs a word."""
    paged(api, items(count))
    is_silent = style == "header" and count < 7  # a header that no page has proves nothing
    changed = {"pages": {**STYLES[style], "end": "absent"}} if is_silent else {}
    if is_silent:
        with pytest.raises(ContractError, match="end: absent"):
            pulled(api, tmp_path, style)
        assert landed_in(tmp_path) == []
    place, landed = pulled(api, tmp_path, style, hours=1, **changed)
    assert ids_of(place) == list(range(1, count + 1))
    assert (landed.files, json.loads((place / "snapshot.json").read_bytes())["source"]["rows"]) == (1, count)
    assert facts_of(place)["end"]
    urls = [asked.url for asked in api.asked]
    assert len(urls) == len(set(urls)) + is_silent


def test_a_row_has_its_fields_and_keeps_the_rest(api: Api, tmp_path: Path) -> None:
    record = item(1, source={"name": "Times"}, text="teaser", big=2**60, none=None)
    paged(api, [record])
    place, _ = pulled(api, tmp_path, fields={"text": "body.text", "url": "link", "date": "published"})
    [row] = rows_of(place)
    assert row == {
        "id": "1",
        "text": record["body"]["text"],
        "url": "https://site.example/1",
        "date": "2026-01-02T00:00:00Z",
        "body": {"lang": "en"},
        "source_": {"name": "Times"},
        "text_": "teaser",
        "big": 2**60,
        "none": None,
        "score": 0.5,
    }


def test_the_bytes_follow_from_the_records_alone(api: Api, tmp_path: Path) -> None:
    digests = set()
    for number, (style, size) in enumerate([("cursor", 7), ("page", 3), ("link", 50)]):
        paged(api, items(40) if number else items(40)[::-1], size)
        place, _ = pulled(api, tmp_path / str(number), style)
        digests.add(json.loads((place / "snapshot.json").read_bytes())["files"][0]["sha256"])
    assert len(digests) == 1


# --- Ends that nothing proves -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("style", "changed", "named"),
    [
        ("cursor", {"next": "meta.cursor"}, "meta.cursor"),  # no such path
        ("next", {"next": "meta.cursor"}, "meta.cursor"),
        ("cursor", {"param": "cursor"}, "repeats"),  # the server does not know the param, and sends the first page
        ("page", {"param": "p"}, "repeats"),
        ("offset", {"param": "skip"}, "repeats"),
        ("cursor", {"next": "meta"}, "an object"),
        ("more", {"more": "meta.has_more"}, "absent"),
    ],
)
def test_a_wrong_way_of_paging_does_not_end_early(
    api: Api, tmp_path: Path, style: str, changed: dict[str, Any], named: str
) -> None:
    paged(api, items(30))
    with pytest.raises(ContractError, match=named):
        pulled(api, tmp_path, style, pages={**STYLES[style], **changed})
    assert landed_in(tmp_path) == []


def test_one_answer_with_a_link_to_the_next_is_not_all(api: Api, tmp_path: Path) -> None:
    paged(api, items(30))
    with pytest.raises(ContractError, match="Link"):
        pulled(api, tmp_path, pages={"by": "once"})
    paged(api, items(5))
    place, _ = pulled(api, tmp_path, pages={"by": "once"})
    assert ids_of(place) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("total", "style"),
    [
        pytest.param(total, style, marks=() if total == 29 or style == next(iter(STYLES)) else pytest.mark.nightly)
        for total in (29, 31, 14, 7, 0)
        for style in STYLES
    ],
)
def test_a_total_that_lies_is_refused(api: Api, tmp_path: Path, style: str, total: int) -> None:
    paged(api, items(30), total=total)
    with pytest.raises(ContractError, match=r"declares|proves no end"):
        pulled(api, tmp_path, style, total="meta.total")
    assert landed_in(tmp_path) == []


@pytest.mark.parametrize("style", STYLES)
def test_a_total_that_holds_is_a_fact(api: Api, tmp_path: Path, style: str) -> None:
    paged(api, items(30))
    place, _ = pulled(api, tmp_path, style, total="meta.total")
    assert facts_of(place)["total"] == [30, 30]


def test_a_total_that_changes_between_cursors_bounds_the_records(api: Api, tmp_path: Path) -> None:
    """Records come and go while they are read: what came lies between the least and the most declared."""
    for least, is_right in ((28, True), (31, False)):
        api.reply = lambda asked, least=least: page_of(  # type: ignore[misc]
            api.address, asked, items(30), 7, least + 4 * ("after" in asked.params)
        )
        if is_right:
            place, _ = pulled(api, tmp_path / "right", total="meta.total")
            assert facts_of(place)["total"] == [28, 32]
        else:
            with pytest.raises(ContractError, match="31 to 35"):
                pulled(api, tmp_path / "wrong", total="meta.total")


@pytest.mark.parametrize("style", ["page", "offset"])
def test_a_total_that_changes_between_counted_pages_begins_the_part_anew(api: Api, tmp_path: Path, style: str) -> None:
    """A record that is deleted moves another one to a page that was read before: it would be lost."""
    held = items(30)

    def reply(asked: Asked) -> Reply:
        if asked.number == 2:
            del held[0]
        return page_of(api.address, asked, held, 7)

    api.reply = reply
    place, _ = pulled(api, tmp_path, style, total="meta.total")
    assert ids_of(place) == list(range(2, 31))
    assert facts_of(place)["begun"] == 2
    api.reply = lambda asked: page_of(api.address, asked, held, 7, total=asked.number)
    with pytest.raises(ContractError, match="3 times"):
        pulled(api, tmp_path, style, total="meta.total", hours=1)


def test_a_page_that_is_shorter_than_the_next_is_not_the_last(api: Api, tmp_path: Path) -> None:
    """A server that leaves out hidden records after it has cut a page."""
    hidden = {8, 9}
    style = {"by": "page", "param": "page", "size": 5}

    def reply(asked: Asked) -> Reply:
        whole = page_of(api.address, asked, items(22), 5)
        whole.body["data"]["items"] = [one for one in whole.body["data"]["items"] if one["id"] not in hidden]
        return whole

    api.reply = reply
    with pytest.raises(ContractError, match="end: empty"):
        pulled(api, tmp_path, pages={**style, "end": "short"})
    place, _ = pulled(api, tmp_path, pages=style, hours=1)
    assert ids_of(place) == [number for number in range(1, 23) if number not in hidden]


@pytest.mark.parametrize("status", [400, 404, 422])
@pytest.mark.parametrize(("style", "is_end"), [("short", True), ("total", True), ("page", False), ("cursor", False)])
def test_a_page_that_does_not_exist_is_an_end_only_behind_the_last(
    api: Api, tmp_path: Path, status: int, style: str, is_end: bool
) -> None:
    def reply(asked: Asked) -> Reply:
        whole = page_of(api.address, asked, items(23), 5)
        return whole if whole.body["data"]["items"] and "23" not in asked.params.values() else Reply(status=status)

    api.reply = reply
    if style == "cursor":
        api.fault = lambda asked: Reply(status=status) if asked.number == 2 else None
    if is_end:
        place, _ = pulled(api, tmp_path, style, total="meta.total")
        assert ids_of(place) == list(range(1, 24))
    else:
        with pytest.raises(ContractError, match=str(status)):
            pulled(api, tmp_path, style, total="meta.total")
        assert landed_in(tmp_path) == []


def test_a_server_that_gives_fewer_than_asked_loses_nothing(api: Api, tmp_path: Path) -> None:
    api.reply = lambda asked: page_of(
        api.address, Asked(0, asked.path, {**asked.params, "limit": "4"}, {}, 0), items(30), 4
    )
    place, _ = pulled(api, tmp_path, pages={**STYLES["offset"], "size": 10, "size_param": "limit"})
    assert ids_of(place) == list(range(1, 31))


def test_a_server_that_gives_its_last_page_again_needs_a_total(api: Api, tmp_path: Path) -> None:
    api.reply = lambda asked: page_of(
        api.address, Asked(0, asked.path, {"page": str(min(int(asked.params["page"]), 5))}, {}, 0), items(30), 7
    )
    pages = {"by": "page", "param": "page"}
    with pytest.raises(ContractError, match="end: total"):
        pulled(api, tmp_path, pages=pages, total="meta.total")
    place, _ = pulled(api, tmp_path, pages={**pages, "end": "total"}, total="meta.total", hours=1)
    assert ids_of(place) == list(range(1, 31))
    paged(api, items(30), total=28)
    with pytest.raises(ContractError, match="proves no end"):
        pulled(api, tmp_path, pages={**pages, "end": "total"}, total="meta.total", hours=2)


def test_a_record_that_is_nested_too_deeply_is_refused(api: Api, tmp_path: Path) -> None:
    nested: Any = 1
    for _ in range(400):
        nested = [nested]
    paged(api, [item(1, nested=nested)])
    with pytest.raises(ContractError, match="'1'"):
        pulled(api, tmp_path)


def test_a_cursor_that_loops_is_refused(api: Api, tmp_path: Path) -> None:
    def reply(asked: Asked) -> Reply:
        whole = page_of(api.address, asked, items(30), 7)
        if asked.params.get("after") == "14":
            whole.body["meta"]["next"] = "7"
        return whole

    api.reply = reply
    with pytest.raises(ContractError, match="circle"):
        pulled(api, tmp_path)
    assert len(api.asked) == 3
    assert landed_in(tmp_path) == []


def test_new_cursors_that_lead_nowhere_are_refused(api: Api, tmp_path: Path) -> None:
    def reply(asked: Asked) -> Reply:
        whole = page_of(api.address, Asked(0, asked.path, {}, {}, 0), items(30), 7)
        whole.body["meta"]["next"] = f"c{asked.number}"
        return whole

    api.reply = reply
    with pytest.raises(ContractError, match="repeats"):
        pulled(api, tmp_path)
    assert len(api.asked) == 4


def test_a_page_that_is_repeated_by_mistake_is_asked_for_again(api: Api, tmp_path: Path) -> None:
    paged(api, items(30))
    repeated = (2, 4)
    api.fault = lambda asked: (
        page_of(api.address, Asked(0, asked.path, {"after": "7"}, {}, 0), items(30), 7)
        if asked.number in repeated
        else None
    )
    place, _ = pulled(api, tmp_path)
    assert ids_of(place) == list(range(1, 31))


def test_pages_that_overlap_give_each_record_once(api: Api, tmp_path: Path) -> None:
    def reply(asked: Asked) -> Reply:
        start = int(asked.params.get("after", 0))
        return Reply(
            {"data": {"items": items(30)[start : start + 9]}, "meta": {"next": start + 6 if start < 24 else None}}
        )

    api.reply = reply
    place, _ = pulled(api, tmp_path)
    assert ids_of(place) == list(range(1, 31))
    assert facts_of(place)["repeated"] == 12


def test_a_record_with_other_content_is_the_newest_or_refused(api: Api, tmp_path: Path) -> None:
    old, new = item(3), item(3, published="2026-01-30T00:00:00Z")
    for number, pair in enumerate([(old, new), (new, old)]):
        paged(api, [])
        answers = iter(
            [
                Reply({"data": {"items": [pair[0], item(4)]}, "meta": {"next": "x"}}),
                Reply({"data": {"items": [pair[1], item(5)]}, "meta": {"next": None}}),
            ]
        )
        api.reply = lambda _asked, answers=answers: next(answers)  # type: ignore[misc]
        since = {"param": "since", "field": "published"}
        place, _ = pulled(api, tmp_path / str(number), since=since)
        assert [row["date"] for row in rows_of(place)] == [
            "2026-01-30T00:00:00Z",
            "2026-01-05T00:00:00Z",
            "2026-01-06T00:00:00Z",
        ]
        assert facts_of(place)["superseded"] == 1
    answers = iter(
        [
            Reply({"data": {"items": [old, item(4)]}, "meta": {"next": "x"}}),
            Reply({"data": {"items": [new, item(5)]}, "meta": {"next": None}}),
        ]
    )
    api.reply = lambda _asked: next(answers)
    with pytest.raises(ContractError, match="'3'"):
        pulled(api, tmp_path / "refused")


# --- Answers that are damaged -------------------------------------------------------------------------------------

WHOLE = json.dumps({"data": {"items": items(3)}, "meta": {"next": None}}).encode()


@pytest.mark.parametrize(
    "body",
    [
        WHOLE[:-1],
        WHOLE[: len(WHOLE) // 2],
        b"",
        b"<html>busy</html>",
        b'{"data": {"items": {}}}',
        b'{"data": {}}',
        b"[]",
    ],
)
def test_an_answer_that_is_cut_is_asked_for_again_and_then_refused(api: Api, tmp_path: Path, body: bytes) -> None:
    paged(api, items(30))
    api.fault = lambda asked: Reply(body) if asked.number in (1, 2) else None
    place, _ = pulled(api, tmp_path)
    assert ids_of(place) == list(range(1, 31))
    api.fault = lambda asked: Reply(body) if asked.params.get("after") == "14" else None
    with pytest.raises(ContractError, match="after=14"):
        pulled(api, tmp_path, hours=1)
    assert len(landed_in(tmp_path)) == 1


def test_a_connection_that_breaks_off_is_asked_for_again_eight_times(api: Api, tmp_path: Path) -> None:
    paged(api, items(30))
    api.fault = lambda asked: Reply({"data": {"items": items(9)}}, drop_after=50) if 1 <= asked.number < 8 else None
    place, _ = pulled(api, tmp_path)
    assert ids_of(place) == list(range(1, 31))
    api.fault = lambda _asked: Reply(b"x" * 99, drop_after=50)
    with pytest.raises(SourceBusy):
        pulled(api, tmp_path, hours=1)


def test_a_next_page_elsewhere_is_not_followed(api: Api, tmp_path: Path) -> None:
    paged(api, items(30))
    for target in ("http://169.254.169.254/x", "https://other.example/", "//other.example/x", "ftp://127.0.0.1/x"):
        api.fault = lambda _asked, target=target: Reply({"data": {"items": items(3)}, "meta": {"url": target}})  # type: ignore[misc]
        with pytest.raises(ContractError, match="another address"):
            pulled(api, tmp_path, "next")
    for target in ("http://[x", "\x00", "x" * 100_000):
        api.fault = lambda _asked, target=target: Reply({"data": {"items": items(3)}, "meta": {"url": target}})  # type: ignore[misc]
        with pytest.raises(ContractError, match="no URL"):
            pulled(api, tmp_path, "next")
    for hours, target in enumerate(("?after=3", "https://127.0.0.1/items?after=3#top")):  # as behind a proxy
        api.fault = lambda asked, target=target: (  # type: ignore[misc]
            Reply({"data": {"items": items(3)}, "meta": {"url": target}}) if not asked.params else None
        )
        place, _ = pulled(api, tmp_path, "next", hours=hours)
        assert ids_of(place) == list(range(1, 31))


def test_a_header_of_links_is_read_by_its_rules() -> None:
    assert (
        next_link('<https://a/?x=1,2>; rel="prev", <https://a/?y=;,>; title="a, b"; rel="last next"')
        == "https://a/?y=;,"
    )
    assert next_link("<b>;rel=next") == "b"
    assert next_link("</c> ; REL = Next") == "/c"
    assert links_of('<a>; rel="first", <b>; rel="last"') == [("a", {"first"}), ("b", {"last"})]
    assert [next_link(header) for header in ("", "x", "<a>", '<a>; title="rel=next"')] == ["", "", "", ""]


# --- Recipes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"url": "https://me:secret@api.example"}, "user"),
        ({"url": "https://api.example/x?key=1"}, "query"),
        ({"fields": {"text": "a", "body": "b"}}, "body"),
        ({"fields": {"url": "a"}}, "text"),
        ({"fields": {"text": "a", "html": "b"}}, "html"),
        ({"id": ""}, "id"),
        ({"pages": {"by": "cursor", "param": "c"}}, "next"),
        ({"pages": {"by": "page"}}, "param"),
        ({"pages": {"by": "link", "next": "x"}}, "next"),
        ({"pages": {"by": "page", "param": "p", "end": "short"}}, "size"),
        ({"pages": {"by": "cursor", "param": "c", "next": "n", "end": "short"}}, "short"),
        ({"pages": {"by": "cursr"}}, "by"),
        ({"params": {"api_key": "abcdef"}}, "auth"),
        ({"headers": {"Authorization": "Bearer abcdef"}}, "auth"),
        ({"params": {"after": 1}}, "two meanings"),
        ({"auth": {"by": "bearer"}}, "env"),
        ({"auth": {"by": "bearer", "env": "sk-abc def!"}}, "names"),
        ({"auth": {"by": "header", "env": "X"}}, "name"),
        ({"split": {"params": ["a"], "values": []}}, "split"),
        ({"split": {"params": ["a", "b"], "values": [[1, 2], [3]]}}, "split"),
        ({"split": {"params": ["a"], "values": [1, "1"]}}, "twice"),
        ({"deleted": {}}, "deleted"),
        ({"moment": "20260101T000000Z"}, "moment"),
    ],
)
def test_a_query_that_makes_no_sense_is_refused_by_its_key(
    api: Api, tmp_path: Path, changed: dict[str, Any], named: str
) -> None:
    with pytest.raises(RecipeError, match=named) as caught:
        pulled(api, tmp_path, **changed)
    assert "abc" not in str(caught.value)
    assert api.asked == []


def test_the_recipe_of_the_page_is_one(api: Api) -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/sources/pull-from-an-api.md").read_text()
    blocks = [block.partition("```")[0] for block in page.split("```yaml\n")[1:]]
    recipe = yaml.safe_load(blocks[0])
    assert parse_source(recipe, "news.yaml", {}).kind == "api"
    splits = [yaml.safe_load(line)["split"] for line in blocks[1].splitlines()]
    assert len(splits) == 2
    for split in splits:
        assert parse_source(recipe, "news.yaml", {"split": split}).source.query()["split"] == split
