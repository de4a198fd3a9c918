"""A pull of an API lands what is new, deleted and of one schema, within its rate, and shows its secret to nobody."""

import base64
import json
import logging
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from refinery_sources.budget import Budget, Rate
from refinery_sources.plan import plan
from refinery_sources.pull import Pull, landing_at
from refinery_sources.recipe import parse_source
from refinery_sources.source import Occasion

from pipeline_tasks.errors import ContractError, RecipeError, SourceBusy, SourceRefused
from pipeline_tasks.landing.arrival import MISSING, arrival_of
from tests.sources.api_pulls import FIELDS, NOW, deleted_of, facts_of, ids_of, landed_in, pulled, query_of
from tests.sources.api_server import Api, Asked, Reply, item, items, page_of, paged
from tests.sources.pulling import SLEW, on_loopback

SINCE = {"param": "since", "field": "published"}


def since(api: Api, records: list[dict[str, Any]], field: str = "published") -> None:
    """Let an API give the records that changed at what `since` says, or after it."""

    def reply(asked: Asked) -> Reply:
        new = [record for record in records if record[field] >= asked.params.get("since", "")]
        return page_of(api.address, asked, sorted(new, key=lambda record: record[field]), 7)

    api.reply = reply


# --- What is new --------------------------------------------------------------------------------------------------


def test_only_what_is_new_or_changed_comes_again(api: Api, tmp_path: Path) -> None:
    held = items(20)
    since(api, held)
    first, _ = pulled(api, tmp_path, since=SINCE)
    assert (first.name, ids_of(first)) == ("news-20260201T060000Z", list(range(1, 21)))
    held[4] = item(5, published="2026-01-29T00:00:00Z", body={"text": "changed", "lang": "en"})
    held.append(item(30, published="2026-01-30T00:00:00Z"))
    asked = len(api.asked)
    second, _ = pulled(api, tmp_path, since=SINCE, hours=1)
    assert second.name == "news-20260201T070000Z"
    assert ids_of(second) == [5, 30]
    assert {one.params["since"] for one in api.asked[asked:]} == {"2026-01-21T00:00:00Z"}
    assert (facts_of(second)["newest"], facts_of(second)["unchanged"]) == ("2026-01-30T00:00:00Z", 1)
    third, landed = pulled(api, tmp_path, since=SINCE, hours=2)  # the last record comes again, and is not new
    assert (landed.files, landed.bytes, third.exists()) == (0, 0, False)
    held.append(item(31, published="2026-01-30T00:00:00Z"))  # of the same moment
    fourth, _ = pulled(api, tmp_path, since=SINCE, hours=3)
    assert ids_of(fourth) == [31]
    _, landed = pulled(api, tmp_path, since=SINCE, hours=4)
    assert landed.files == 0
    assert landed_in(tmp_path) == [first.name, second.name, fourth.name]


def test_a_moment_that_has_not_come_yet_hides_nothing(api: Api, tmp_path: Path) -> None:
    held = [*items(20), item(21, published="2099-01-01T00:00:00Z")]
    since(api, held)
    first, _ = pulled(api, tmp_path, since=SINCE)
    assert (ids_of(first)[-1], facts_of(first)["newest"]) == (21, "2026-01-21T00:00:00Z")
    held.append(item(22, published="2026-02-01T06:30:00Z"))
    second, _ = pulled(api, tmp_path, since=SINCE, hours=1)
    assert ids_of(second) == [22]


def test_a_full_pull_without_a_record_is_refused(api: Api, tmp_path: Path) -> None:
    paged(api, [])
    with pytest.raises(ContractError, match="no record"):
        pulled(api, tmp_path)
    _, landed = pulled(api, tmp_path, total="meta.total", hours=1)  # the API itself says that there is none
    assert (landed.files, landed_in(tmp_path)) == (0, [])


@pytest.mark.parametrize(
    ("since", "sent"),
    [
        ({"overlap": 3600}, "2026-01-20T23:00:00Z"),
        ({"format": "epoch"}, "1768953600"),
        ({"format": "%Y-%m-%d", "overlap": 86400}, "2026-01-20"),
        ({"format": "%d/%m/%Y"}, "21/01/2026"),
    ],
)
def test_a_moment_is_sent_as_the_api_takes_it(api: Api, tmp_path: Path, since: dict[str, Any], sent: str) -> None:
    paged(api, items(20))
    pulled(api, tmp_path, since={**SINCE, **since})
    paged(api, items(5, 18))  # published from the 19th to the 23rd
    with pytest.raises(ContractError, match="does not choose"):
        pulled(api, tmp_path, since={**SINCE, **since}, hours=1)
    assert api.asked[-1].params["since"] == sent
    paged(api, items(3, 20))
    place, _ = pulled(api, tmp_path, since={**SINCE, **since}, hours=2)
    assert ids_of(place) == [21, 22]


def test_a_number_is_a_moment_too(api: Api, tmp_path: Path) -> None:
    paged(api, items(20))
    numbers = {"param": "since", "field": "score", "first": 0.5, "overlap": 1}
    pulled(api, tmp_path, since=numbers)
    assert api.asked[0].params["since"] == "0.5"
    paged(api, items(4, 18))
    place, _ = pulled(api, tmp_path, since=numbers, hours=1)
    assert (api.asked[-1].params["since"], ids_of(place)) == ("9.0", [21])


def test_a_number_that_is_a_time_is_none_of_the_future(api: Api, tmp_path: Path) -> None:
    epochs = {"param": "since", "field": "at", "format": "epoch"}
    paged(api, [item(1, at=1_769_000_000), item(2, at=9_999_999_999)])
    place, _ = pulled(api, tmp_path, since=epochs)
    assert facts_of(place)["newest"] == 1_769_000_000
    paged(api, [item(1, at=-1e300)])
    with pytest.raises(ContractError, match=r"at is -1e\+300"):
        pulled(api, tmp_path, since=epochs, name="other")


@pytest.mark.parametrize("value", ["Tue, 3 Feb", None, True, [1]])
def test_a_moment_that_cannot_be_compared_is_refused(api: Api, tmp_path: Path, value: object) -> None:
    paged(api, [item(1, published=value)])
    with pytest.raises(ContractError, match="published"):
        pulled(api, tmp_path, since=SINCE)


def test_a_corrected_recipe_begins_anew_and_an_unchanged_one_goes_on(api: Api, tmp_path: Path) -> None:
    paged(api, items(30))
    api.fault = lambda asked: Reply(status=500) if asked.params.get("after") == "14" else None
    with pytest.raises(SourceBusy):
        pulled(api, tmp_path)
    api.fault, before = lambda _asked: None, len(api.asked)
    place, _ = pulled(api, tmp_path, hours=5)
    assert place.name == "news-20260201T060000Z"  # and not of five hours later
    assert [asked.params.get("after") for asked in api.asked[before:]] == ["14", "21", "28"]
    with pytest.raises(ContractError, match=r"body\.html.*body\.text, body\.lang"):
        pulled(api, tmp_path, hours=6, fields={"text": "body.html"})
    place, _ = pulled(api, tmp_path, hours=7)
    assert (place.name, ids_of(place)) == ("news-20260201T130000Z", list(range(1, 31)))


def test_a_cursor_that_has_expired_meanwhile_begins_the_part_anew(api: Api, tmp_path: Path) -> None:
    paged(api, items(30))
    api.fault = lambda asked: Reply(status=500) if asked.params.get("after") == "14" else None
    with pytest.raises(SourceBusy):
        pulled(api, tmp_path)
    expired = len(api.asked)
    api.fault = lambda asked: Reply(status=410) if asked.number == expired else None
    place, _ = pulled(api, tmp_path, hours=1)
    assert ids_of(place) == list(range(1, 31))
    assert facts_of(place)["begun"] == 2


# --- Deletions ----------------------------------------------------------------------------------------------------


def test_records_that_are_marked_as_deleted_are_no_data(api: Api, tmp_path: Path) -> None:
    held = [*items(20), item(21, gone="2026-01-22"), {"id": 22, "gone": True, "published": "2026-01-23"}]
    since(api, held)
    place, _ = pulled(api, tmp_path, since=SINCE, deleted={"field": "gone"}, workers=1)
    assert ids_of(place) == list(range(1, 21))
    assert deleted_of(place) == [{"id": "21"}, {"id": "22"}]
    source = json.loads((place / "snapshot.json").read_bytes())["source"]
    assert [file["path"] for file in source["beside"]] == ["_deleted.jsonl"]
    held[0] = item(1, gone=True, published="2026-01-31T00:00:00Z")
    second, landed = pulled(api, tmp_path, since=SINCE, deleted={"field": "gone"}, hours=1)
    assert (landed.files, deleted_of(second)) == (0, [{"id": "1"}])
    assert arrival_of(str(second)).state == MISSING  # there is nothing to refine
    third, landed = pulled(api, tmp_path, since=SINCE, deleted={"field": "gone"}, hours=2)
    assert (landed.files, third.exists()) == (0, False)


def test_deletions_of_another_url_are_paged_too(api: Api, tmp_path: Path) -> None:
    gone = [{"id": number} for number in range(100, 130)]
    api.reply = lambda asked: page_of(api.address, asked, gone if asked.path == "/gone" else items(9), 7)
    deleted = {"url": f"{api.address}/gone", "records": "data.items"}
    place, _ = pulled(api, tmp_path, deleted=deleted)
    assert [row["id"] for row in deleted_of(place)] == [str(number) for number in range(100, 130)]
    assert ids_of(place) == list(range(1, 10))


def test_deletions_of_another_url_are_asked_since_the_part_that_is_furthest_behind(api: Api, tmp_path: Path) -> None:
    def reply(asked: Asked) -> Reply:
        day = int(asked.params.get("day", 0))
        return page_of(api.address, asked, [{"id": 7}] if asked.path == "/gone" else items(1, day), 7)

    api.reply = reply
    split = {"params": ["day"], "values": [20, 10, 15]}
    deleted = {"url": f"{api.address}/gone", "records": "data.items"}
    for hours, sent in enumerate([None, "2026-01-11T00:00:00Z"]):
        pulled(api, tmp_path, split=split, since=SINCE, deleted=deleted, hours=hours, workers=1)
        assert (api.asked[-1].path, api.asked[-1].params.get("since")) == ("/gone", sent)


def test_deletions_wait_for_the_parts_that_say_them(api: Api, tmp_path: Path) -> None:
    def reply(asked: Asked) -> Reply:
        start = 100 * int(asked.params["year"])
        records = [item(number, gone=number % 10 == 0) for number in range(start, start + 30)]
        return page_of(api.address, asked, records, 7)

    api.reply = reply
    split = {"params": ["year"], "values": [1, 2, 3]}
    api.fault = lambda asked: Reply(b"{") if asked.params.get("after") == "213" else None
    with pytest.raises(ContractError, match="2 of 4 files are complete") as caught:
        pulled(api, tmp_path, split=split, deleted={"field": "gone"}, workers=2)
    assert str(caught.value).startswith("1 file is refused")
    api.fault = lambda _asked: None
    place, _ = pulled(api, tmp_path, split=split, deleted={"field": "gone"}, workers=2, hours=1)
    assert sorted(row["id"] for row in deleted_of(place)) == [
        str(100 * year + ten) for year in (1, 2, 3) for ten in (0, 10, 20)
    ]
    assert len(ids_of(place)) == 81
    years = [asked.params["year"] for asked in api.asked]
    assert (years.count("1"), years.count("3")) == (5, 5)


# --- Splits -------------------------------------------------------------------------------------------------------


def by_year(api: Api) -> None:
    def reply(asked: Asked) -> Reply:
        start, stop = int(asked.params["from"]), int(asked.params["to"])
        return page_of(api.address, asked, items(stop - start, start), 3)

    api.reply = reply


def test_parts_have_cursors_of_their_own(api: Api, tmp_path: Path) -> None:
    by_year(api)
    split = {"params": ["from", "to"], "values": [[1, 11], [11, 31], [31, 31]]}
    place, landed = pulled(api, tmp_path, split=split, workers=3)
    assert ids_of(place) == list(range(1, 31))
    assert landed.files == 2  # the third has no record, and is no file
    assert len({asked.url for asked in api.asked}) == len(api.asked)
    files = [file["path"] for file in json.loads((place / "snapshot.json").read_bytes())["files"]]
    assert [facts_of(place, file)["split"] for file in files] == [{"from": 1, "to": 11}, {"from": 11, "to": 31}]


def test_a_record_that_two_parts_bring_at_one_time_is_refused(api: Api, tmp_path: Path) -> None:
    both = threading.Barrier(2, timeout=120)
    api.reply = lambda _asked: Reply([item(number) for number in range(3000)], hold=both.wait)
    split = {"params": ["part"], "values": [1, 2]}
    with pytest.raises(ContractError, match=r"record '0', and so has [12]-"):
        pulled(api, tmp_path, split=split, records="", pages={"by": "once"}, workers=2)
    assert landed_in(tmp_path) == []


def test_a_record_of_two_parts_is_refused(api: Api, tmp_path: Path) -> None:
    by_year(api)
    with pytest.raises(ContractError, match="'10'"):
        pulled(api, tmp_path, split={"params": ["from", "to"], "values": [[1, 11], [10, 20]]})
    assert landed_in(tmp_path) == []


# --- Schemas ------------------------------------------------------------------------------------------------------


def test_a_schema_that_grows_is_recorded_and_one_that_breaks_is_refused_with_the_difference(
    api: Api, tmp_path: Path
) -> None:
    paged(api, items(10))
    pulled(api, tmp_path)
    paged(api, [item(1, score=2, tags=["a"], body={"text": "x", "lang": None}), item(2, author={"name": "A"})])
    place, _ = pulled(api, tmp_path, hours=1)
    assert facts_of(place)["added"] == ["author", "author.name", "tags", "tags[]"]
    paged(api, [item(1), item(2, author="A", tags=[1], published=7)])
    with pytest.raises(ContractError, match="author was object and is string") as caught:
        pulled(api, tmp_path, hours=2)
    assert "published was string and is integer or string; tags[] was string and is integer" in str(caught.value)
    assert len(landed_in(tmp_path)) == 2
    place, _ = pulled(api, tmp_path, hours=3, schema_version=2)
    assert facts_of(place)["added"] == []
    paged(api, [item(1), item(2, author="A", tags=[1], published=7)])
    assert facts_of(pulled(api, tmp_path, hours=4, schema_version=2)[0])["schema_version"] == 2


def test_an_object_whose_names_are_data_is_a_map(api: Api, tmp_path: Path) -> None:
    paged(
        api,
        [
            item(1, views={f"day {day}": day for day in range(99)}),
            item(2, views={f"day {day}": 1.5 for day in range(80, 300)}),
        ],
    )
    place, _ = pulled(api, tmp_path)
    assert facts_of(place)["schema"]["fields"]["views"]["fields"] == {"*": {"types": ["integer", "number"]}}
    paged(api, [item(1, views={"day 400": "many"})])
    with pytest.raises(ContractError, match=r"views\.\*"):
        pulled(api, tmp_path, hours=1)


# --- Who asks -----------------------------------------------------------------------------------------------------

SECRET = "s3cr3t-of-mine"


def everything_below(folder: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("auth", "environ", "header"),
    [
        ({"by": "bearer", "env": "NEWS"}, SECRET, f"Bearer {SECRET}"),
        ({"by": "basic", "env": "NEWS"}, f"me:{SECRET}", base64.b64encode(f"me:{SECRET}".encode()).decode()),
        (
            {"by": "basic", "connection": "news"},
            f"http://me:{SECRET}@h",
            base64.b64encode(f"me:{SECRET}".encode()).decode(),
        ),
        ({"by": "bearer", "connection": "news"}, json.dumps({"password": SECRET}), f"Bearer {SECRET}"),
        ({"by": "header", "env": "NEWS", "name": "X-Api-Key"}, SECRET, SECRET),
        ({"by": "query", "env": "NEWS", "name": "api_key"}, SECRET, ""),
    ],
)
def test_a_secret_is_sent_and_nowhere_else(  # noqa: PLR0917 -- fixtures and values
    api: Api,
    tmp_path: Path,
    budgets: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    auth: dict[str, str],
    environ: str,
    header: str,
) -> None:
    caplog.set_level(logging.DEBUG, "httpx")
    with pytest.raises(RecipeError, match="NEWS"):
        pulled(api, tmp_path, "next", auth=auth)
    monkeypatch.setenv("AIRFLOW_CONN_NEWS" if "connection" in auth else "NEWS", environ)
    paged(api, items(20))  # whose next URL repeats every param that was sent
    errors = []
    for status, error in ((500, SourceBusy), (403, SourceRefused)):
        api.fault = lambda asked, status=status: Reply(status=status) if "after" in asked.params else None  # type: ignore[misc]
        with pytest.raises(error) as caught:
            pulled(api, tmp_path, "next", auth=auth)
        errors.append(str(caught.value))
    api.fault = lambda _asked: None
    before = everything_below(tmp_path)
    Budget(api.address.removeprefix("http://"), Rate(1_000.0)).reopen()
    place, _ = pulled(api, tmp_path, "next", auth=auth)
    assert ids_of(place) == list(range(1, 21))
    shown = before + everything_below(tmp_path) + everything_below(budgets) + "\n".join([*errors, caplog.text]).encode()
    assert SECRET.encode() not in shown
    assert base64.b64encode(f"me:{SECRET}".encode()) not in shown
    for asked in api.asked:
        assert (asked.params.get("api_key", "") == SECRET) == (auth["by"] == "query")
        assert header in " ".join(asked.headers.values())


# --- Rate ---------------------------------------------------------------------------------------------------------


def test_eight_workers_are_within_the_rate(api: Api, tmp_path: Path) -> None:
    by_year(api)
    split = {"params": ["from", "to"], "values": [[9 * part, 9 * part + 6] for part in range(8)]}
    begin = time.time()
    place, _ = pulled(api, tmp_path, split=split, workers=8, rate=Rate(20.0))
    moments = sorted(asked.at for asked in api.asked)
    assert (len(moments), len(ids_of(place))) == (16, 48)
    for number, moment in enumerate(moments):
        assert moment >= begin + number / 20.0 - SLEW


def test_a_storm_of_429_slows_all_workers_down_and_loses_nothing(api: Api, tmp_path: Path) -> None:
    by_year(api)
    storm = [number for number in range(10, 60) if number % 3]
    api.fault = lambda asked: Reply(status=429) if asked.number in storm else None
    split = {"params": ["from", "to"], "values": [[20 * part, 20 * part + 18] for part in range(8)]}
    place, _ = pulled(api, tmp_path, split=split, workers=8)
    assert ids_of(place) == [number for part in range(8) for number in range(20 * part, 20 * part + 18)]
    assert len(api.asked) == 48 + len(storm)
    last = api.asked[39].at  # the next request is sent after this one was answered, and each later one behind a gap
    for number, asked in enumerate(api.asked[40:60]):
        assert asked.at >= last + number * 64 / 1_000 / 2 - SLEW  # at a rate of 1,000 a second


def test_a_limit_that_is_used_up_is_waited_for(api: Api, tmp_path: Path) -> None:
    headers = (("RateLimit-Remaining", "0"), ("RateLimit-Reset", "1"))
    paged(api, items(20))
    api.fault = lambda asked: (
        Reply(page_of(api.address, asked, items(20), 7).body, headers) if asked.number == 1 else None
    )
    place, _ = pulled(api, tmp_path)
    assert api.asked[2].at >= api.asked[1].at + 1 - SLEW
    assert ids_of(place) == list(range(1, 21))


def test_a_plan_asks_nothing(api: Api, tmp_path: Path) -> None:
    by_year(api)
    split = {"params": ["from", "to"], "values": [[1, 11], [11, 31]]}
    recipe = parse_source({"source": {"api": query_of(api, split=split)}}, "news.yaml", {})
    with on_loopback() as on:
        source = recipe.source.resolved(Occasion(on, "news", NOW))
        planned = plan(source, landing_at(str(tmp_path / "to"), tmp_path), Pull(on, 1))
    assert (planned.files, planned.bytes, api.asked) == (2, 20_000_000, [])


# --- Names --------------------------------------------------------------------------------------------------------


def test_a_recipe_whose_name_begins_with_another_has_snapshots_of_its_own(api: Api, tmp_path: Path) -> None:
    since(api, items(20))
    pulled(api, tmp_path, since=SINCE, name="news-eu", hours=1)
    place, _ = pulled(api, tmp_path, since=SINCE)
    assert len(ids_of(place)) == 20


def test_an_unresolved_query_says_what_it_asks(api: Api) -> None:
    recipe = parse_source({"source": {"api": query_of(api, terms_text="CC BY 4.0")}}, "news.yaml", {})
    assert recipe.source.query()["url"] == api.url
    assert recipe.source.terms.text == "CC BY 4.0"
    assert json.loads(json.dumps(recipe.source.query())) == recipe.source.query()
    assert recipe.source.query()["fields"] == FIELDS
