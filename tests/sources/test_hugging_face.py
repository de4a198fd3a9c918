"""A dataset of the Hub lands at one commit with its declared digests, and a token goes to the Hub alone."""

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refinery_sources.admission import admitted
from refinery_sources.download import PIECE
from refinery_sources.hubs.hub import Hub, redirected
from refinery_sources.hubs.hugging_face import HuggingFace
from refinery_sources.testing import check_source

from pipeline_tasks.errors import ContractError, RecipeError, SourceBusy
from tests.sources.hub_server import COMMIT, SIGNATURE, Answer, HubServer, hub_server
from tests.sources.pulling import (
    NOW,
    Killed,
    digests_of,
    killed_after,
    on_loopback,
    promise_of,
    pull_source,
    query_of,
    records_of,
)

PROSE = "The ferry leaves the harbor every morning before the fog has lifted from the water."
CARD = b"---\nlicense: cc-by-4.0\n---\n# Ferries\n"


def table(rows: int) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"doc": [{"body": f"{PROSE} {n}"} for n in range(rows)]}), sink)
    return sink.getvalue()


LINES = b"".join(json.dumps({"doc": {"body": f"{PROSE} {n}"}}).encode() + b"\n" for n in range(5))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    with hub_server() as running:
        monkeypatch.setenv("HF_ENDPOINT", running.address)
        running.files = {
            "README.md": CARD,
            "LICENSE": b"Attribution.\n",
            ".gitattributes": b"*.parquet lfs\n",
            "data/train 1.parquet": table(2000),
            "data/train 2.parquet": table(30),
            "data/few.jsonl": LINES,
            "dataset_infos.json": b"{}",
            "script.py": b"print()\n",
        }
        running.large = {"data/train 1.parquet", "data/train 2.parquet"}
        yield running


def source(**more: Any) -> dict[str, Any]:
    return {"hugging_face": {"repository": "kelp/ferries", "fields": {"text": "doc.body"}, **more}}


def test_the_files_of_a_commit_land_as_they_are_with_license_and_terms(hub: HubServer, tmp_path: Path) -> None:
    landed, result = pull_source(source(), tmp_path / "landings")
    assert landed.name == f"news-20260102T030405Z-{COMMIT[:12]}"
    assert result.files == 3
    for name in ("data/few.jsonl", "data/train 1.parquet", "data/train 2.parquet"):
        assert (landed / name).read_bytes() == hub.files[name]
    assert (landed / "_terms-README.md").read_bytes() == CARD
    assert (landed / "_terms-LICENSE").read_bytes() == b"Attribution.\n"
    about = promise_of(landed)["source"]
    assert (about["cursor"], about["query"]["revision"]) == (COMMIT, "main")
    assert "cc-by-4.0" in about["terms"]["text"]
    assert [file["path"] for file in about["rights"]] == ["_terms-LICENSE", "_terms-README.md"]
    texts = [record["text"] for record in records_of(landed)]
    assert sorted(set(texts)) == sorted(f"{PROSE} {n}" for n in range(2000))
    assert SIGNATURE not in (landed / "snapshot.json").read_text()


@pytest.mark.usefixtures("hub")
def test_it_keeps_what_every_source_promises() -> None:
    check_source(query_of(source()))


def test_a_mirror_that_names_next_pages_at_the_hub_is_asked_itself(hub: HubServer, tmp_path: Path) -> None:
    hub.pages_at = "https://hub.example"
    landed, _ = pull_source(source(), tmp_path / "landings")
    assert len(promise_of(landed)["files"]) == 3


def test_a_list_that_ends_early_is_refused(hub: HubServer, tmp_path: Path) -> None:
    hub.last_page = 4
    with pytest.raises(ContractError, match=r"lists 3 files .* without 5"):
        pull_source(source(), tmp_path / "landings")
    assert hub.downloads() == []


def test_patterns_choose_the_files(hub: HubServer, tmp_path: Path) -> None:
    landed, _ = pull_source(source(include=["*"], exclude=["*.parquet"]), tmp_path / "landings")
    assert [file["path"] for file in promise_of(landed)["files"]] == ["data/few.jsonl"]
    assert not any("train" in asked.path for asked in hub.downloads())


def test_train_is_pulled_and_other_splits_are_named_unless_a_pattern_chooses_them(
    hub: HubServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hub.files |= {"data/test-00000-of-00001.parquet": table(3), "data/validation-00000-of-00001.parquet": table(3)}
    landed, _ = pull_source(source(), tmp_path / "train")
    assert {file["path"] for file in promise_of(landed)["files"]} == {
        *("data/few.jsonl", "data/train 1.parquet", "data/train 2.parquet")
    }
    left_out = [line for line in caplog.messages if "left out" in line]
    assert [line.partition(" (")[0] for line in left_out] == [
        "kelp/ferries: 1 file left out: data/test-00000-of-00001.parquet",
        "kelp/ferries: 1 file left out: data/validation-00000-of-00001.parquet",
    ]
    landed, _ = pull_source(source(include=["data/test-*"]), tmp_path / "test")
    assert [file["path"] for file in promise_of(landed)["files"]] == ["data/test-00000-of-00001.parquet"]
    hub.files = {"data/test-00000-of-00001.parquet": table(3)}
    with pytest.raises(RecipeError, match="train alone is taken; name others by `include`"):
        pull_source(source(), tmp_path / "none")


def test_a_token_goes_to_the_hub_and_to_no_other_host(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("HF_ENDPOINT", hub.address)
    landed, _ = pull_source(source(), tmp_path / "landings")
    tokens = {host: {asked.token for asked in hub.asked if asked.host == host} for host in ("hub", "storage")}
    assert tokens == {"hub": {"Bearer hf_secret"}, "storage": {""}}
    assert not any(b"hf_secret" in file.read_bytes() for file in landed.rglob("*") if file.is_file())


def test_a_token_does_not_come_back_with_a_redirect_through_another_host(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("HF_ENDPOINT", hub.address)
    way = {"/a": f"{hub.storage}/b", "/b": f"{hub.storage}/c", "/c": f"{hub.storage}/store/data/few.jsonl"}
    hub.instead = lambda asked: Answer(307, {"Location": way[asked.path]}) if asked.path in way else None
    query = HuggingFace("kelp/ferries", address=hub.address)
    with (
        on_loopback() as on,
        admitted(query, on.gate),
        redirected(query.hub, on, f"{hub.address}/a", {}) as response,
    ):
        assert response.read() == LINES
    assert [(asked.host, asked.token) for asked in hub.asked] == [("hub", "Bearer hf_secret"), *[("storage", "")] * 3]


@pytest.mark.parametrize(
    ("address", "location", "named"),
    [
        ("https://hub.example", "http://files.example/a", "TLS"),
        ("https://hub.example", "https://169.254.169.254/a", "number"),
        ("https://hub.example", "https://[::1]/a", "number"),
        ("https://hub.example", "https://localhost/a", "number"),
        ("https://hub.example", "file:///etc/passwd", "web"),
        ("https://hub.example", "https://user:word@files.example/a", "web"),
        ("https://hub.example", "", "web"),
    ],
)
def test_a_redirect_that_could_lead_into_this_network_is_not_followed(address: str, location: str, named: str) -> None:
    import httpx

    answer = httpx.MockTransport(lambda _request: httpx.Response(302, headers={"Location": location}))
    with on_loopback() as on:
        client = httpx.Client(transport=answer)
        with (
            pytest.raises(RecipeError, match=named),
            redirected(Hub(address, "kelp/ferries"), replace(on, client=client), f"{address}/file", {}),
        ):
            pass


def test_redirects_without_end_are_ended(hub: HubServer, tmp_path: Path) -> None:
    hub.instead = lambda asked: Answer(302, {"Location": asked.path}) if "/resolve/" in asked.path else None
    with pytest.raises(RecipeError, match="redirected more than"):
        pull_source(source(include=["data/few.jsonl"]), tmp_path / "landings")


@pytest.mark.parametrize("name", ["data/few.jsonl", "data/train 2.parquet"])
def test_other_bytes_than_the_hub_declares_are_refused(hub: HubServer, name: str, tmp_path: Path) -> None:
    body = bytearray(hub.files[name])
    body[len(body) // 2] ^= 1
    hub.served[name] = bytes(body)
    with pytest.raises(ContractError, match=r"few|train"):
        pull_source(source(), tmp_path / "landings")
    assert not list((tmp_path / "landings").rglob("snapshot.json"))


@pytest.mark.parametrize(
    ("info", "answer", "named"),
    [
        ({"gated": "auto"}, None, "gated.*accept its terms"),
        ({}, Answer(403, {"X-Error-Code": "GatedRepo"}), "gated.*accept its terms"),
        ({}, Answer(401, {"X-Error-Code": "RepoNotFound"}), "private"),
        ({}, Answer(404, {"X-Error-Code": "RevisionNotFound"}), "revision main"),
    ],
)
def test_a_dataset_that_nobody_may_read_is_named(
    hub: HubServer, info: dict[str, Any], answer: Answer | None, named: str, tmp_path: Path
) -> None:
    hub.info |= info
    hub.instead = lambda _asked: answer
    with pytest.raises(RecipeError, match=named):
        pull_source(source(), tmp_path / "landings")
    hub.info["gated"], hub.instead = False, lambda _asked: None
    pull_source(source(), tmp_path / "landings")  # the host is not blocked by it


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"fields": {"text": "doc.text"}}, r"doc\.text; .*doc\.body"),
        ({"include": ["*.csv"]}, "no files"),
        ({"repository": "../etc"}, "repository"),
        ({"revision": "a..b"}, "revision"),
        ({"address": "ftp://hub"}, "https"),
    ],
)
def test_a_query_that_makes_no_sense_is_refused(
    hub: HubServer, more: dict[str, Any], named: str, tmp_path: Path
) -> None:
    with pytest.raises(RecipeError, match=named):
        pull_source(source(**more), tmp_path / "landings")


def test_tables_that_no_landing_reads_are_refused_before_they_are_downloaded(hub: HubServer, tmp_path: Path) -> None:
    hub.files["data/more.csv"] = b"body\nA\n"
    with pytest.raises(RecipeError, match=r"more\.csv.*kind `files`"):
        pull_source(source(include=["data/*"]), tmp_path / "landings")
    assert hub.downloads() == []


@pytest.mark.parametrize("path", ["../outside.jsonl", "/etc/cron.d/a.jsonl", "a/../../b.jsonl", "a//b.jsonl"])
def test_a_path_that_leads_out_of_the_landing_is_refused(hub: HubServer, path: str, tmp_path: Path) -> None:
    hub.files[path] = LINES
    with pytest.raises(ContractError, match="leads elsewhere"):
        pull_source(source(), tmp_path / "landings")


def test_a_broken_off_download_goes_on_at_its_byte(hub: HubServer, tmp_path: Path) -> None:
    hub.files["data/large.jsonl"] = LINES * 500
    hub.large.add("data/large.jsonl")
    hub.drop_after = PIECE + 100
    landed, _ = pull_source(source(include=["data/large.jsonl"]), tmp_path / "landings")
    assert (landed / "data/large.jsonl").read_bytes() == LINES * 500
    assert [asked.start for asked in hub.asked if asked.host == "storage"] == [0, PIECE]


def test_a_killed_pull_goes_on_with_its_commit_though_the_branch_has_moved(hub: HubServer, tmp_path: Path) -> None:
    with pytest.raises(Killed):
        pull_source(source(), tmp_path / "landings", on_bytes=killed_after(3_000))
    info, hub.info = hub.info, {**hub.info, "sha": "f" * 40}
    landed, _ = pull_source(source(), tmp_path / "landings", moment=NOW + timedelta(days=1))
    assert landed.name.endswith(COMMIT[:12])
    hub.info = info
    whole, _ = pull_source(source(revision=COMMIT), tmp_path / "whole")
    assert digests_of(whole) == digests_of(landed)
    _, found = pull_source(source(), tmp_path / "landings")
    assert found.found == 3


def test_an_error_of_the_storage_names_no_signature(hub: HubServer, tmp_path: Path) -> None:
    hub.instead = lambda asked: Answer(503, {}) if asked.host == "storage" else None
    with pytest.raises(SourceBusy) as refused:
        pull_source(source(), tmp_path / "landings")
    assert hub.storage in str(refused.value)
    assert SIGNATURE not in str(refused.value)
