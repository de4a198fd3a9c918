"""An erasure reads what may have the document, and finds all that one finds that reads everything."""

import importlib
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from refinery_rights.erasing.documents import Documents
from refinery_rights.erasing.survey import Survey, survey
from refinery_rights.taking_down import take_down

from pipeline_tasks.cli.main import main
from pipeline_tasks.engines import choose
from pipeline_tasks.errors import ContractError
from pipeline_tasks.inspect.verify.verification import Scope, verify
from pipeline_tasks.recipe import LOCAL
from pipeline_tasks.store.shards.name_index import NameIndex
from pipeline_tasks.store.shards.names import Names, asked_names
from pipeline_tasks.text.base.key_filter import may_have
from pipeline_tasks.text.urls.takedown import of_entries
from pipeline_tasks.upkeep import compact
from tests import erased_root
from tests.chain import reply
from tests.erased_root import DAYS, ErasedRoot

pytestmark = pytest.mark.slow

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

ABSENT = [("site", "nowhere.example"), ("url", "https://nowhere.example/x"), ("doc", "0123456789abcdef" * 2)]
PRESENT = [
    ("site", "site1.example"),
    ("url", erased_root.URLS[0]),
    ("url", erased_root.URLS[2]),
    ("url", erased_root.address(0, 12)),
    ("site", "plain.example"),
]

FILES, DOCUMENTS, WORDS = 4, 8, 60_000
"""Landed files of a root with large texts, documents of each, and words of each document."""

STAGES = ("ingest", "extract", "dedup_exact")


@pytest.fixture(scope="module")
def counting() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield importlib.import_module("counting")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A root with large texts, of which each landed file has a site of its own; its ledger is elsewhere."""
    folder, draws = tmp_path_factory.mktemp("large"), random.Random(3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REFINERY_LEDGER", str(folder / "ledger.sqlite"))
        _refine_large(folder, draws)
        yield folder / "root"


def _refine_large(folder: Path, draws: random.Random) -> None:
    landing = folder / "landing"
    landing.mkdir()
    for file in range(FILES):
        lines = []
        for number in range(DOCUMENTS):
            words = ["".join(draws.choices("abcdefghijklmnopqrstuvwxyz", k=8)) for _ in range(WORDS)]
            url = f"https://www.site{file}.example/{number}"
            lines.append(json.dumps({"text": " ".join(words), "url": url}))
        (landing / f"{file}.jsonl").write_text("\n".join(lines) + "\n")
    named = {"root": str(folder / "root"), "recipe": "large", "snapshot": DAYS[0]}
    landed = reply("land", **named, input=str(landing))
    parent, manifests = landed["manifest"], {"land": landed["manifest"]}
    for stage in STAGES:
        about = {"stage": stage, "params": {}, "parent": parent, "engine": LOCAL}
        parent = manifests[stage] = reply("refine", **named, **about, landing=landed["landing"])["manifest"]
    verdicts = {STAGES[-1]: reply("judge", **named, manifest=parent, override="a test")["verdict"]}
    reply("publish", **named, landing=landed["landing"], manifests=manifests, verdicts=verdicts)


def found_in(root: Path | str, *entries: tuple[str, str]) -> dict[str, Any]:
    """What a look at a root finds, without how it is done."""
    return told(survey(str(root), Documents(of_entries(entries))))


def told(found: Survey) -> dict[str, Any]:
    work = [(each.path, each.action, each.rows, each.bytes) for each in found.work]
    documents = found.documents
    known = (documents.records, documents.ids, documents.others, documents.urls)
    return {"work": work, "left": found.left, "names_in": found.names_in, "objects": found.objects, "known": known}


# --- What is read -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", ABSENT)
def test_what_occurs_nowhere_costs_a_hundredth_of_the_root(
    large: Path, tmp_path: Path, counting: Any, entry: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    root = shutil.copytree(large, tmp_path / "root")
    size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
    assert size >= 20_000_000
    take_down(str(root), [entry], "a letter")
    for words in (["--dry-run"], []):
        asked = counting.Requests(str(root))
        with counting.counted(asked):
            assert main(["erase", str(root), *words, "--by", "a steward"]) == 0
        assert asked.read <= 0.01 * size, words
    assert "nothing to do" in capsys.readouterr().out


def test_what_occurs_in_one_of_four_shards_costs_about_these(large: Path, counting: Any) -> None:
    sizes = [path.stat().st_size for stage in STAGES for path in large.glob(f"{stage}/*/*/*.parquet")]
    grouped = [path.stat().st_size for path in large.glob("dedup_exact/*/data/*.parquet")]
    asked = counting.Requests(str(large))
    with counting.counted(asked):
        found = found_in(large, ("site", "site2.example"))
    assert sum(rows for _, _, rows, _ in found["work"]) >= 2 * DOCUMENTS
    mine = sum(grouped) + (sum(sizes) - sum(grouped)) / FILES
    assert asked.read <= 5.5 * mine, "digests, rows, texts, and what may say something; of the other shards nothing"


# --- What is found ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ErasedRoot:
    return erased_root.make(tmp_path_factory.mktemp("index"))


@pytest.mark.parametrize("entry", [*PRESENT, *ABSENT], ids=lambda entry: f"{entry[0]}-{entry[1][:30]}")
def test_no_filter_hides_what_a_look_at_everything_finds(
    made: ErasedRoot, entry: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = found_in(made.root, entry)
    monkeypatch.setattr(NameIndex, "having", lambda index, _: index.paths)
    everything = found_in(made.root, entry)
    assert found == everything
    assert bool(found["work"]) == (entry in PRESENT)


def test_documents_are_found_by_their_ids_and_many_together(made: ErasedRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = sorted(erased_root.ids(made).values())[::3]
    entries = [*(("doc", id_) for id_ in ids), *PRESENT, *ABSENT]
    found = [found_in(made.root, *entries), found_in(made.root, ("doc", ids[0]))]
    monkeypatch.setattr(NameIndex, "having", lambda index, _: index.paths)
    assert found == [found_in(made.root, *entries), found_in(made.root, ("doc", ids[0]))]
    assert all(each["work"] for each in found)


def test_a_filter_that_passes_by_chance_changes_nothing(made: ErasedRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """An id that no document has, and that a filter has the bits of: the table is read, and has nothing."""
    draws = random.Random(1)
    drawn = [f"{draws.getrandbits(128):032x}" for _ in range(20_000)]
    seen: list[Any] = []
    monkeypatch.setattr(
        "pipeline_tasks.store.shards.name_index.may_have", lambda *them: seen.append(them) or may_have(*them)
    )
    found_in(made.root, ABSENT[0])
    monkeypatch.undo()
    hashes = {id_: asked_names(of_entries([("doc", id_)])) for id_ in drawn}
    chance = next(id_ for id_ in drawn if any(may_have(blocks, hashes[id_]).any() for blocks, _ in seen))
    opened: list[str] = []
    real = NameIndex.having
    monkeypatch.setattr(NameIndex, "having", lambda *them: opened.extend(each := real(*them)) or each)
    found = found_in(made.root, ("doc", chance))
    assert opened
    assert (found["work"], found["left"]) == ([], {})


def without_filters(folder: Path) -> ErasedRoot:
    """A root as an earlier release wrote it; two days, of which the history is compacted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Names, "filter", lambda _: b"")
        patch.setattr(Names, "said", lambda *_: {})
        made = erased_root.land(folder)
        for day in DAYS:
            erased_root.refine(made, day)
        patch.setattr(compact, "FANOUT", 2)
        compact.compact(made.root, choose.engine(LOCAL))
    return made


def test_a_root_of_an_earlier_release_is_erased_as_it_was(made: ErasedRoot, tmp_path: Path) -> None:
    old = without_filters(tmp_path)
    assert not any(b"refinery.names" in path.read_bytes() for path in Path(old.root).rglob("*") if path.is_file())

    def rows(root: ErasedRoot) -> list[tuple[str, str, int]]:
        """The work in stages of a snapshot: datasets and pages are in one of the roots alone."""
        parts = [
            (path.split("/")[0], action, count) for path, action, count, _ in found_in(root.root, PRESENT[0])["work"]
        ]
        return sorted(part for part in parts if part[0] in erased_root.STEPS)

    assert rows(old) == rows(made)
    take_down(old.root, [PRESENT[0]], "a letter")
    assert main(["erase", old.root, "--by", "a steward"]) == 0
    assert verify(old.root).findings.problems == []
    assert any(b"refinery.names" in path.read_bytes() for path in Path(old.root).rglob("*.parquet")), "written anew"


# --- Damage -----------------------------------------------------------------------------------------------------


def copied(made: ErasedRoot, folder: Path) -> ErasedRoot:
    shutil.copytree(made.root, folder / "root")
    shutil.copy(made.tokenizer, folder / "tokenizer.json")
    return ErasedRoot(folder, made.texts)


def a_shard(root: ErasedRoot) -> Path:
    return min(Path(root.root).glob("extract/*/data/*.parquet"))


def test_a_table_whose_filter_is_damaged_is_named_and_nothing_is_erased(made: ErasedRoot, tmp_path: Path) -> None:
    root = copied(made, tmp_path)
    path = a_shard(root)
    body = path.read_bytes()
    start, size, _ = json.loads(pq.read_metadata(path).metadata[b"refinery.names"])
    path.write_bytes(body[:start] + bytes(size) + body[start + size :])
    take_down(root.root, [("site", "nowhere.example")], "a letter")
    assert main(["erase", root.root]) == ContractError.exit_code
    path.write_bytes(body)
    assert main(["erase", root.root]) == 0


def test_who_changes_a_filter_so_that_it_fits_is_found_by_verify(made: ErasedRoot, tmp_path: Path) -> None:
    """The filter is in the bytes that a manifest has the digest of."""
    root = copied(made, tmp_path)
    path = a_shard(root)
    rows = pq.read_table(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Names, "add", lambda *_: None)
        from pipeline_tasks.store.shards.file import ShardWriter

        writer = ShardWriter(rows.schema)
        writer.write(rows.combine_chunks().to_batches()[0])
        other = writer.store(str(tmp_path), "other")
    path.write_bytes((tmp_path / other.path).read_bytes())
    assert any(str(path) in str(problem) for problem in verify(root.root, Scope()).findings.problems)


def test_a_fast_verification_asks_filters_and_finds_what_is_there_again(made: ErasedRoot, tmp_path: Path) -> None:
    root = copied(made, tmp_path)
    path = a_shard(root)
    url = next(str(row["url"]) for row in pq.read_table(path, columns=["url"]).to_pylist() if "site" in str(row["url"]))
    body = path.read_bytes()
    take_down(root.root, [("url", url)], "a letter")
    assert main(["erase", root.root]) == 0
    again = Path(root.root, "extract/orphan/data", path.name)
    again.parent.mkdir(parents=True)
    again.write_bytes(body)
    for full in (True, False):
        findings = verify(root.root, Scope(full=full)).findings
        assert [
            problem.object for problem in findings.problems if problem.problem == "has a document that was erased"
        ] == [str(again)]
    assert findings.checked["tables since an erasure"] < verify(root.root).findings.checked["tables since an erasure"]
