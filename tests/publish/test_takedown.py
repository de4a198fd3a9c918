"""What is taken down leaves training datasets shard by shard, never comes back, and is on record."""

import json
import re
import shutil
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow.parquet as pq
import pytest
from refinery_rights import takedown, taking_down

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import ContractError, GateRefused, RecipeError
from pipeline_tasks.inspect.search.find import find
from pipeline_tasks.inspect.verify.verification import Scope, verify
from pipeline_tasks.publish.datasets.published_shards import open_build
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.takedowns import current_rows, record
from pipeline_tasks.recipe import parse_recipe
from pipeline_tasks.service.handle import handle
from pipeline_tasks.service.requests.gates import JudgeRequest
from pipeline_tasks.service.requests.publication import PublishRequest
from pipeline_tasks.store.reading import read_manifest, read_shards
from pipeline_tasks.store.taken_down import takedowns
from pipeline_tasks.upkeep.vacuum import find_orphans, remove
from tests.chain import How, refined, reply
from tests.publish.test_building import (
    BUILDS,
    REFINES,
    built,
    documents,
    recipe_of,
    refined_days,
    refined_documents,
)


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a root with two refined snapshots and a dataset of twelve shards, and of their crawl."""
    folder = tmp_path_factory.mktemp("takedown")
    built(refined_days(folder), recipe_of(shuffle={"seed": 3, "buckets": 12}))
    return folder


@pytest.fixture
def untouched(crawl: Path) -> str:
    """The root itself, for tests of what changes nothing."""
    return str(crawl / "root")


@pytest.fixture
def root(crawl: Path, tmp_path: Path) -> str:
    return str(shutil.copytree(crawl / "root", tmp_path / "root"))


def again(root: str) -> dict[str, Any]:
    return built(root, recipe_of(shuffle={"seed": 3, "buckets": 12}))


def rows_of(root: str) -> list[list[dict[str, Any]]]:
    """The lineage of each shard of the dataset's newest version."""
    dataset = open_build(root, version_log.current(root, "corpus"))
    paths = [entry["lineage"]["path"].rpartition("/")[2] for entry in dataset.index["shards"]]
    return [pq.read_table(f"{root}/publish/shards/{path}").to_pylist() for path in paths]


def shards_of(root: str) -> list[str]:
    dataset = open_build(root, version_log.current(root, "corpus"))
    return [entry["bin"]["sha256"] for entry in dataset.index["shards"]]


def host(row: dict[str, Any]) -> str:
    return urlsplit(row["url"]).netloc


def rare_site(root: str) -> str:
    """A site that few shards have."""
    hosts = Counter(name for shard in rows_of(root) for name in {host(row) for row in shard})
    return min(hosts, key=lambda name: (hosts[name], name))


def text_of(root: str, document: dict[str, Any]) -> str:
    version = version_log.current(root, "tiny", document["snapshot"])
    extracted = read_manifest(root, version.manifests["extract"])
    rows = [row for batch in read_shards(root, extracted.shards, ["id", "text"]) for row in batch.to_pylist()]
    return next(str(row["text"]) for row in rows if row["id"] == document["id"])


def take_down(root: str, *words: str) -> None:
    assert main(["takedown", root, *words, "--reason", "a letter"]) == 0


def reasons(root: str, recipe: str, stage: str, snapshot: str = "") -> dict[str, int]:
    version = version_log.current(root, recipe, snapshot)
    return dict(read_manifest(root, version.manifests[stage]).rejected)


@pytest.mark.slow
def test_a_site_leaves_only_the_shards_that_held_it(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    site, before, shards = rare_site(root), rows_of(root), shards_of(root)
    held = [any(host(row) == site for row in shard) for shard in before]
    assert 0 < sum(held) < len(held)
    assert main(["takedown", root, "--site", site, "--reason", "a letter", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["republished"] == [
        {"recipe": "corpus", "before": 1, "after": 2, "uses": facts["republished"][0]["uses"]}
        | {"shards": len(shards), "packed_again": sum(held)}
    ]
    after = rows_of(root)
    for was, now, digests, hit in zip(before, after, zip(shards, shards_of(root), strict=True), held, strict=True):
        left = Counter((row["id"], row["copy"], row["doc_start"]) for row in was if host(row) != site)
        assert Counter((row["id"], row["copy"], row["doc_start"]) for row in now) == left
        assert (digests[0] != digests[1]) == hit
    assert verify(root, Scope()).findings.problems == []
    assert reasons(root, "corpus", "takedown") == {"takedown:taken_down": facts["republished"][0]["uses"]}


def test_other_shards_are_not_packed_again(root: str) -> None:
    def packed() -> set[str]:
        return {path.name for path in Path(root, "pack").rglob("receipts/*.json")}

    site = rare_site(root)
    held = sum(any(host(row) == site for row in shard) for shard in rows_of(root))
    before = packed()
    take_down(root, "--site", site)
    assert len(packed() - before) == held
    before = packed()
    take_down(root, "--site", "nowhere.example")
    assert packed() == before
    assert version_log.current(root, "corpus").number == 2


def test_shards_whose_tails_are_padded_are_packed_by_themselves(root: str) -> None:
    """Documents end to end move up behind one that leaves: to the end of its shard, with tails to that of the run."""
    packing = {"shuffle": {"seed": 3, "buckets": 12}, "pack": {"tail": "pad", "length": 64}}
    built(root, recipe_of(**packing))
    site, before = rare_site(root), shards_of(root)
    held = [any(host(row) == site for row in shard) for shard in rows_of(root)]
    take_down(root, "--site", site)
    assert version_log.current(root, "corpus").number == 3
    assert [now != was for now, was in zip(shards_of(root), before, strict=True)] == held


def test_a_build_after_a_takedown_is_the_version_that_the_takedown_published(root: str) -> None:
    take_down(root, "--site", rare_site(root))
    index = version_log.current(root, "corpus").files
    assert again(root)["version"] == 2
    take_down(root, "--site", "nowhere.example")
    assert again(root)["version"] == 2, "what no document has changes no version"
    assert version_log.current(root, "corpus").files == index


@pytest.mark.parametrize("kind", ["url", "doc", "text"])
def test_a_document_leaves_by_url_id_or_text(root: str, kind: str, tmp_path: Path) -> None:
    [row, *_] = [row for row in documents(root).values() if row["language"] == "de"]
    named = {"url": f"{row['url']}?utm_source=x#top", "doc": row["id"].upper(), "text": str(tmp_path / "text.txt")}
    (tmp_path / "text.txt").write_text(text_of(root, row), encoding="utf-8")
    take_down(root, f"--{kind}", named[kind])
    version = version_log.current(root, "corpus")
    assert version.number == 2
    assert list(find(root, [version], [("doc", row["id"])])) == []
    others = {id_ for shard in rows_of(root) for id_ in (piece["id"] for piece in shard)}
    assert len(others) > 10


def test_an_export_has_nothing_that_was_taken_down(
    root: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Texts are read from the selection, which a takedown leaves as it is; an earlier version that had them is refused."""
    site = rare_site(root)
    take_down(root, "--site", site)
    assert main(["export", root, "--format", "text-parquet", "--to", str(tmp_path / "to")]) == 0
    rows = pq.read_table(tmp_path / "to" / "data").to_pylist()
    assert site not in {host(row) for row in rows}
    assert {row["id"] for row in rows} == {piece["id"] for shard in rows_of(root) for piece in shard}
    was = ["export", root, "--recipe", "corpus@1", "--format", "text-parquet", "--to", str(tmp_path / "was")]
    capsys.readouterr()
    assert main(was) == RecipeError.exit_code
    assert site in capsys.readouterr().err
    assert not (tmp_path / "was").exists()
    assert main(["takedown", root, "--undo", "--site", site, "--reason", "a mistake"]) == 0
    assert main(was) == 0
    assert site in {host(row) for row in pq.read_table(tmp_path / "was" / "data").to_pylist()}


def test_the_way_out_of_a_trial_is_to_retract_it() -> None:
    """No recipe has the name of its trials, so `refinery run` would refuse it."""
    whole = {"recipe": "web", "snapshot": "2026-11-20", "landing": "/crawl/2026-11-20"}
    _, run, retract = takedown.snapshot_lines("/root", [whole, {**whole, "recipe": "web.trial"}])
    assert run == "  refinery run /root --recipe web --snapshot 2026-11-20 --input /crawl/2026-11-20"
    assert retract == "  refinery retract 2026-11-20 /root --recipe web.trial --reason takedown"


def test_the_way_out_of_a_recipe_of_ones_own_names_its_file() -> None:
    """`refinery run --recipe tiny` finds no such recipe, and a shell reads two words where a folder has a space."""
    own = {"recipe": "tiny", "snapshot": "2026-11-20", "landing": "/my crawl"}
    _, run, note = takedown.snapshot_lines("/root", [own])
    assert run == "  refinery run /root --recipe tiny.yaml --snapshot 2026-11-20 --input '/my crawl'"
    assert note == "of tiny give the path of the recipe's file"


def test_a_root_that_has_published_nothing_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The folder above a root took the entry, as if it were one without such a document."""
    take_down(str(tmp_path), "--site", "a.example")
    assert f"{tmp_path} has published nothing: what lands there is refused" in capsys.readouterr().out


def test_a_file_names_many(root: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site, [row, *_] = rare_site(root), list(documents(root).values())
    listed = tmp_path / "list.txt"
    listed.write_text(f"# letters of May\n{site}  # a site\n\n{row['url']}\n{row['id']}\n")
    take_down(root, "--file", str(listed))
    assert {(entry["kind"], entry["value"]) for entry in current_rows(root)} == {
        ("site", site),
        ("url", row["url"]),
        ("doc", row["id"]),
    }
    listed.write_text(f"{site}\nnot a site\n")
    assert main(["takedown", root, "--file", str(listed), "--reason", "x"]) == RecipeError.exit_code
    assert f"{listed}: line 2: 'not a site' is no id" in capsys.readouterr().err
    assert len(takedowns(root)) == 1
    take_down(root, "--undo", "--site", site)
    capsys.readouterr()
    assert main(["takedown", root, "--list"]) == 0
    down, allowed, now = capsys.readouterr().out.splitlines()
    assert f"taken down: doc {row['id']}, site {site}, url {row['url']}" in down
    assert f"allowed again: site {site}" in allowed
    assert now == "2 entries taken down now"
    assert main(["takedown", root, "--list", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["taken_down"]) == 2


NAMELESS = [
    (["--site", "com"], "site 'com' has to be a host"),
    (["--site", "co.uk"], "site 'co.uk' is a public suffix"),
    (["--site", "https://a.example/"], "has to be a host"),
    (["--site", "*.a.example"], "has to be a host"),
    (["--site", "a.example,b.example"], "has to be a host"),
    (["--site", "a..example"], "has to be a host"),
    (["--url", "a page"], "has to be an address with its host"),
    (["--doc", "12"], "doc '12' has to be the id of a document, 32 hex digits"),
]
"""Options that name no document, URL or site, and the message."""


@pytest.mark.parametrize(("words", "message"), [*NAMELESS, ([], "name what to find")])
def test_what_names_nothing_is_not_looked_for(
    untouched: str, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`find` answered `0 places`, as for a site that no document has."""
    assert main(["look", "find", untouched, *words]) == RecipeError.exit_code
    assert message in capsys.readouterr().err


def test_a_recipe_that_has_published_nothing_is_not_searched(
    untouched: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`find` answered `0 places`."""
    assert main(["look", "find", untouched, "--site", "a.example", "--recipe", "tinny"]) == RecipeError.exit_code
    assert f"{untouched} has no training dataset 'tinny' (it has corpus)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        *NAMELESS,
        ([], "name what to take down"),
        (["--file", "nowhere.txt"], "cannot be read"),
        (["--site", "a.example", "--override", "mix=why"], "there is no such gate"),
        (["--undo", "--site", "a.example"], "was not taken down"),
        (["--undo", "--site", "a.example", "--dry-run"], "was not taken down"),
    ],
)
def test_what_names_nothing_is_refused_and_not_recorded(
    untouched: str, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["takedown", untouched, *words, "--reason", "x"]) == RecipeError.exit_code
    assert message in capsys.readouterr().err
    assert takedowns(untouched) == []


def test_a_takedown_needs_a_reason_and_a_dry_run_none(
    root: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = rare_site(root)
    assert main(["takedown", root, "--site", site]) == RecipeError.exit_code
    assert capsys.readouterr() == ("", "refinery: say why with --reason; the log keeps it\n"), "before it searches"
    assert main(["takedown", root, "--file", str(tmp_path / "none"), "--reason", " "]) == RecipeError.exit_code
    assert "say why with --reason" in capsys.readouterr().err, "before it reads a list"
    assert main(["takedown", root, "--site", site, "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert "corpus version 1:" in printed
    assert "no build uses it" not in printed, "the one above does until it is taken down"
    assert "no build would use it any more; these snapshots would have it" in printed
    assert takedowns(root) == []
    assert version_log.current(root, "corpus").number == 1


def test_the_same_takedown_again_records_nothing_and_finishes_what_was_interrupted(root: str) -> None:
    site = rare_site(root)
    record(root, [("site", site)], "a letter")  # and then it was killed
    take_down(root, "--site", site)
    assert len(takedowns(root)) == 1
    assert version_log.current(root, "corpus").number == 2
    take_down(root, "--site", site)
    assert (len(takedowns(root)), version_log.current(root, "corpus").number) == (1, 2)


def test_a_dataset_that_was_built_without_it_has_what_is_undone_again(root: str) -> None:
    site, recipe = rare_site(root), parse_recipe(BUILDS | {"name": "other"}, "other.yaml")
    take_down(root, "--site", site)
    assert built(root, recipe)["version"] == 1
    assert reasons(root, "other", "select")["select:taken_down"] > 0
    assert built(root, recipe)["version"] == 1
    take_down(root, "--undo", "--site", site)
    assert built(root, recipe)["version"] == 2
    assert list(find(root, [version_log.current(root, "other")], [("site", site)]))


def test_an_undoing_publishes_the_datasets_again_that_were_without_it(
    root: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """All datasets from which anything at all was taken were published again, and listed."""
    [site, other, *_] = sorted({host(row) for shard in rows_of(root) for row in shard})
    [row, *_] = [row for shard in rows_of(root) for row in shard if host(row) == other]
    take_down(root, "--site", site)
    take_down(root, "--site", other, "--doc", row["id"])
    take_down(root, "--site", "nowhere.example")
    capsys.readouterr()
    undo = ["takedown", root, "--undo", "--json", "--reason", "a mistake"]
    for words in (["--site", "nowhere.example"], ["--doc", row["id"]]):
        assert main([*undo, *words]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert (facts["republished"], facts["documents"]) == ([], 0), "it is of a site that is still taken down"
    assert main([*undo, "--site", other, "--dry-run"]) == 0
    foretold = json.loads(capsys.readouterr().out)
    assert main([*undo, "--site", other]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [(again["before"], again["after"]) for again in facts["republished"]] == [(3, 4)]
    came_back = {row["id"] for shard in rows_of(root) for row in shard if host(row) == other}
    assert foretold["documents"] == facts["documents"] == len(came_back)


def test_a_gate_that_refuses_leaves_the_entry_and_says_what_to_do(
    root: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sites = [word for name in {host(row) for shard in rows_of(root) for row in shard} for word in ("--site", name)]
    assert main(["takedown", root, *sites, "--reason", "a letter"]) == GateRefused.exit_code
    message = capsys.readouterr().err
    assert message.startswith("refinery: the gate of takedown refuses corpus\n")
    assert "The entry stays recorded" in message
    assert "Not published again: corpus version 1. Run the same command" in message
    assert (len(takedowns(root)), version_log.current(root, "corpus").number) == (1, 1)


def test_a_version_that_is_published_just_before_the_entry_is_found(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The versions were read before the entry was recorded: one that came between was missed until the next run."""
    site, other = rare_site(root), parse_recipe(BUILDS | {"name": "other"}, "other.yaml")

    def recorded_after_a_build(*args: Any, **named: Any) -> Any:
        assert built(root, other)["version"] == 1
        return record(*args, **named)

    monkeypatch.setattr(taking_down, "record", recorded_after_a_build)
    take_down(root, "--site", site)
    assert version_log.current(root, "other").number == 2
    assert list(find(root, [version_log.current(root, "other")], [("site", site)])) == []


def test_a_dataset_that_is_restored_just_after_the_search_is_named(
    root: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was restored without a word, with documents that were taken down while it was retracted."""
    site, restore = rare_site(root), version_log.restore
    assert main(["retract", "build", root, "--recipe", "corpus", "--reason", "a leak"]) == 0

    def restored_after_a_takedown(*args: Any) -> Any:
        take_down(root, "--site", site)
        return restore(*args)

    monkeypatch.setattr(version_log, "restore", restored_after_a_takedown)
    assert main(["retract", "build", root, "--recipe", "corpus", "--undo"]) == RecipeError.exit_code
    assert "is restored, and has documents that were taken down since" in capsys.readouterr().err
    assert again(root)["version"] == 4


@pytest.mark.parametrize("lost", [False, True], ids=["a build", "a build whose task was killed and tried again"])
def test_a_version_that_is_published_just_after_the_search_fails_its_build(
    root: str, monkeypatch: pytest.MonkeyPatch, *, lost: bool
) -> None:
    """It was published without a word: neither the takedown nor the build saw the other."""
    site, other = rare_site(root), parse_recipe(BUILDS | {"name": "other"}, "other.yaml")
    append, sent = version_log.append, list[Any]()

    def appended_after_a_takedown(*args: Any) -> Any:
        monkeypatch.undo()
        sent.append(PublishRequest(root, "other", "build", args[1]["manifests"]))
        take_down(root, "--site", site)
        version = append(*args)
        if lost:
            raise KeyboardInterrupt
        return version

    monkeypatch.setattr(version_log, "append", appended_after_a_takedown)
    if lost:
        with pytest.raises(KeyboardInterrupt):
            built(root, other)
    with pytest.raises(RecipeError, match=r"version 1 of other .*takedown"):
        handle(sent[0]) if lost else built(root, other)
    assert built(root, other)["version"] == 2
    assert list(find(root, [version_log.current(root, "other")], [("site", site)])) == []


@pytest.mark.parametrize("step", ["judged", "handle"], ids=["before it publishes", "as it publishes"])
def test_a_takedown_begins_anew_from_a_version_that_is_built_meanwhile(
    step: str, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It read version 1, a build made version 2, and version 3 was the composition of version 1 again."""
    site, mixes = rare_site(root), [{"weights": {"en": 2, "de": 1}}]
    original = getattr(takedown, step)

    def after_a_build(*args: Any) -> Any:
        if mixes and isinstance(args[0], PublishRequest | JudgeRequest):
            assert built(root, recipe_of(mix=mixes.pop()))["version"] == 2
        return original(*args)

    monkeypatch.setattr(takedown, step, after_a_build)
    take_down(root, "--site", site)
    assert mixes == []
    newest, meanwhile = version_log.current(root, "corpus"), version_log.versions(root, "corpus")[1]
    assert newest.manifests["mix"] == meanwhile.manifests["mix"]
    assert list(find(root, [newest], [("site", site)])) == []


def test_an_undoing_that_was_interrupted_goes_on(root: str) -> None:
    site, before = rare_site(root), shards_of(root)
    take_down(root, "--site", site)
    record(root, [("site", site)], "a mistake", undo=True)  # and then it was killed
    take_down(root, "--undo", "--site", site)
    assert shards_of(root) == before
    assert [takedown.undo for takedown in takedowns(root)] == [False, True]
    take_down(root, "--undo", "--site", site)
    assert len(takedowns(root)) == 2


def test_future_ingests_refuse_what_was_taken_down(root: str, crawl: Path, tmp_path: Path) -> None:
    site, [row, *_] = rare_site(root), [row for row in documents(root).values() if row["language"] == "fr"]
    assert host(row) != site
    take_down(root, "--site", site, "--doc", row["id"])
    recipe = tmp_path / "tiny.yaml"
    recipe.write_text(REFINES)
    snapshots = ("2026-11-19", "2026-11-20")
    parts = Counter[str]()
    for snapshot in snapshots:
        refined(root, str(crawl / "crawl" / snapshot), How(recipe=str(recipe), partitions=2))
        for stage in ("ingest", "extract"):
            parts.update(reasons(root, "tiny", stage, snapshot))
        rows = read_manifest(root, version_log.current(root, "tiny", snapshot).manifests["extract"])
        rejects = [entry for batch in read_shards(root, rows.rejects) for entry in batch.to_pylist()]
        assert [entry["text"] for entry in rejects if entry["reason"] == "extract:taken_down"] in ([], [None])
    assert parts["ingest:taken_down"] > 0
    assert parts["extract:taken_down"] > 0
    assert not [row for row in refined_documents(root).values() if host(row) == site]
    assert again(root)["version"] == 3
    assert "select:taken_down" not in reasons(root, "corpus", "select"), "the snapshots have it no more"
    assert reasons(root, "corpus", "takedown") == {}


def test_a_build_of_other_snapshots_leaves_it_out_before_it_mixes(root: str, crawl: Path, tmp_path: Path) -> None:
    site = rare_site(root)
    take_down(root, "--site", site)
    recipe = tmp_path / "tiny.yaml"
    recipe.write_text(REFINES.replace("min_chars: 100", "min_chars: 200"))
    refined(root, str(crawl / "crawl/2026-11-20"), How(recipe=str(recipe)))
    assert again(root)["version"] == 3
    if any(host(row) == site for row in refined_documents(root).values()):
        assert reasons(root, "corpus", "select")["select:taken_down"] > 0
    assert not [row for shard in rows_of(root) for row in shard if host(row) == site]
    assert reasons(root, "corpus", "takedown") == {}


def test_a_removed_or_changed_takedown_is_named(root: str) -> None:
    take_down(root, "--site", "a.example")
    take_down(root, "--site", "b.example")
    entry = Path(root, "takedowns/000000000002.json")
    body = entry.read_bytes()
    entry.write_bytes(body.replace(b"b.example", b"c.example"))
    with pytest.raises(ContractError, match=re.escape(str(entry))):
        takedowns(root)
    assert any("000000000002.json" in str(problem) for problem in verify(root, Scope()).findings.problems)
    entry.unlink()
    with pytest.raises(ContractError, match="takedown 2 "):
        takedowns(root)
    with pytest.raises(ContractError, match="takedown 2 "):
        again(root)


def test_a_vacuum_keeps_packed_shards_that_versions_share(root: str) -> None:
    take_down(root, "--site", rare_site(root))
    orphans = find_orphans(root, grace=0.0)
    remove(root, orphans, limit=1.0)
    assert verify(root, Scope(full=True)).findings.problems == []
    assert again(root)["version"] == 2


def test_a_version_from_before_a_takedown_is_not_built_again(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    site = rare_site(root)
    assert main(["build", "--again", "1", "--output", root, "--recipe", "corpus"]) == 0
    take_down(root, "--site", "nowhere.example")
    assert main(["build", "--again", "1", "--output", root, "--recipe", "corpus"]) == 0
    take_down(root, "--site", site)
    capsys.readouterr()
    assert main(["build", "--again", "1", "--output", root, "--recipe", "corpus"]) == RecipeError.exit_code
    assert f'taken down since ({{"site":"{site}","takedown":2}})' in capsys.readouterr().err
    assert main(["build", "--again", "2", "--output", root, "--recipe", "corpus"]) == 0
    take_down(root, "--undo", "--site", site)
    assert main(["build", "--again", "1", "--output", root, "--recipe", "corpus"]) == 0


def test_a_check_writes_no_list(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It stored the list that held then, to compare its digest."""
    record(root, [("site", rare_site(root))], "a letter")
    before = sorted(Path(root).rglob("*.parquet"))
    assert main(["build", "--again", "1", "--output", root, "--recipe", "corpus"]) == RecipeError.exit_code
    assert "taken down since" in capsys.readouterr().err
    assert sorted(Path(root).rglob("*.parquet")) == before


def test_what_is_taken_down_while_a_dataset_is_built_is_not_published(root: str) -> None:
    recipe, site, stages = recipe_of(shuffle={"seed": 4, "buckets": 12}), rare_site(root), {}
    assert recipe.versions is not None
    named = {"root": root, "recipe": "other", "snapshot": "build"}
    parent = stages["compose"] = reply("compose", **named, versions=asdict(recipe.versions))["manifest"]
    for step in recipe.steps:
        if step.stage == "pack":
            take_down(root, "--site", site)
        fields = {"stage": step.stage, "params": dict(step.params), "parent": parent, "engine": "local"}
        parent = stages[step.stage] = reply("refine", **named, **fields)["manifest"]
    request = PublishRequest(root, "other", "build", stages)
    with pytest.raises(RecipeError, match=r"other.*takedown"):
        handle(request)
    assert version_log.versions(root, "other") == []


def test_a_retracted_dataset_does_not_bring_back_what_was_taken_down(
    root: str, capsys: pytest.CaptureFixture[str]
) -> None:
    site = rare_site(root)
    assert main(["retract", "build", root, "--recipe", "corpus", "--reason", "a leak"]) == 0
    take_down(root, "--site", site)
    undo = ["retract", "build", root, "--recipe", "corpus", "--undo"]
    assert main(undo) == RecipeError.exit_code
    assert "taken down since" in capsys.readouterr().err
    assert again(root)["version"] == 3
    assert not [row for shard in rows_of(root) for row in shard if host(row) == site]
    assert main(undo) == 0
    assert version_log.current(root, "corpus").number == 3
