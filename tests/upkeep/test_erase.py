"""After an erasure no object below a root has a text that was taken down, and everything else is as it was.

What is left is searched for by `tests.root_search`, which shares no code with what erases.
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from refinery_vectors.table import is_installed

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.inspect.verify.verification import Scope, verify
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.sealed import unseal
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import erasures
from pipeline_tasks.store.reading import read_manifest, read_shards
from pipeline_tasks.training.batch import IGNORED
from pipeline_tasks.training.dataset import TokenDataset
from tests import erased_root
from tests.chain import PROJECT
from tests.erased_root import DATASET, DAYS, RECIPE, URLS, ErasedRoot, address
from tests.root_search import Wanted, search
from tests.vector_root import vector_root

pytestmark = pytest.mark.slow

VOCABULARIES = ("tokenizers/",)
"""What may have the words of texts: the tests make a tokenizer that knows each."""

WHY = ("--reason", "a letter", "--override", "takedown=a test", "--engine", "local")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ErasedRoot:
    """A root that no test changes."""
    return erased_root.make(tmp_path_factory.mktemp("erase"))


@pytest.fixture
def root(made: ErasedRoot, tmp_path: Path) -> ErasedRoot:
    return copied(made, tmp_path)


def copied(made: ErasedRoot, folder: Path) -> ErasedRoot:
    shutil.copytree(made.root, folder / "root")
    shutil.copy(made.tokenizer, folder / "tokenizer.json")
    return replace(made, folder=folder)


def digests(root: ErasedRoot) -> dict[str, str]:
    """SHA-256 of each object below a root, without the ledger, which is a copy."""
    paths = [path for path in Path(root.root).rglob("*") if path.is_file() and path.suffix != ".sqlite"]
    return {str(path.relative_to(root.root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def take_down(root: ErasedRoot, *words: str) -> None:
    assert main(["takedown", root.root, *words, *WHY]) == 0


def erase(root: ErasedRoot, *words: str) -> int:
    return main(["erase", root.root, *words, "--by", "a steward"])


def left(root: ErasedRoot, *urls: str) -> dict[str, set[str]]:
    """Which objects still have texts of documents."""
    return search(Path(root.root), root.wanted(*urls), VOCABULARIES)


def having_addresses(root: ErasedRoot, *urls: str) -> dict[str, set[str]]:
    """Which objects have addresses of documents, as they landed or were scrubbed."""
    forms = {
        form
        for url in urls
        for form in (url, url.replace(erased_root.MAIL, "<EMAIL>"), url.replace("user:secret@", ""))
    }
    return search(Path(root.root), Wanted({form: form for form in forms}, root.tokenizer), VOCABULARIES)


def problems(root: ErasedRoot) -> list[str]:
    return [str(problem) for problem in verify(root.root, Scope()).findings.problems]


FORMS: Mapping[str, Sequence[str]] = {
    "HTTPS://EXAMPLE.org:443/a~b/c/../c/../%53tra%c3%9fe?q=1#x": [URLS[0]],
    "https://xn--bcher-kva.example/Seite%2F1": [URLS[1]],
    f"http://mail.EXAMPLE/of/./{erased_root.MAIL}/page": [URLS[2]],
    "http://plain.example./x": [URLS[3]],
    "http:\\\\plain.example\\x": [URLS[3]],
}


@pytest.mark.parametrize(
    "form", [pytest.param(form, marks=pytest.mark.nightly if at else ()) for at, form in enumerate([*FORMS][:4])]
)
def test_an_address_in_any_form_is_erased_from_every_object_and_nothing_else_is(root: ErasedRoot, form: str) -> None:
    take_down(root, "--url", form)
    before, held = digests(root), left(root, *FORMS[form])
    assert len({path.split("/")[0] for path in held}) >= 7, "it is in shards, packed tokens, exports and a page"
    held |= having_addresses(root, *FORMS[form])
    assert erase(root) == 0
    assert left(root, *FORMS[form]) == {}
    assert problems(root) == []
    require_precise(root, before, held)


def require_precise(root: ErasedRoot, before: Mapping[str, str], held: Mapping[str, set[str]]) -> None:
    """Require that all that was touched is on record, that it had the documents, and that the rest is as it was."""
    objects = [each for entry in erasures(root.root) for each in entry.objects]
    gone = {each.before.path for each in objects}
    came = {each.after.path: each.after.digest for each in objects if each.after}
    after = {path: digest for path, digest in digests(root).items() if not path.startswith("erasures/")}
    assert after == {path: digest for path, digest in (before | came).items() if path not in gone}
    assert {
        each.before.path: each.before.digest for each in objects if each.before.path in before
    }.items() <= before.items()
    for path in gone & before.keys():
        is_part = path.startswith("scrub_pii/") or "/exports/" in path  # what differs from a text; an export is a whole
        assert path in held or is_part, f"{path} has none of it"


TWENTY = (
    *[("--url", form) for form in FORMS],
    *[("--doc", address(0, number)) for number in range(4, 9)],
    ("--site", "site1.example"),
    ("--url", address(1, 0)),
    "build",
    ("--doc", address(1, 2)),
    ("--file", address(1, 3), address(1, 5)),
    "compact",
    ("--url", address(1, 6)),
    ("--doc", address(1, 8)),
    "export",
    ("--url", f"{address(1, 9)}/?utm_source=a"),
    ("--doc", address(1, 11)),
    ("--url", address(0, 9)),
    ("--doc", address(0, 12)),
)
"""What is done one after the other: what is taken down and erased, and what is built, compacted and exported meanwhile."""


FEW = (
    ("--url", next(iter(FORMS))),
    ("--doc", address(0, 8)),
    "build",
    ("--site", "mail.example"),
    "compact",
    ("--file", address(1, 3), address(1, 5)),
    "export",
    ("--url", f"{address(1, 9)}/?utm_source=a"),
)


@pytest.mark.parametrize("steps", [FEW, pytest.param(TWENTY, marks=pytest.mark.nightly)], ids=["few", "twenty"])
def test_erasures_one_after_the_other(steps: Sequence[Any], made: ErasedRoot, tmp_path: Path) -> None:
    """Only here objects are erased again and again, and between builds, compactions and exports."""
    root, known = copied(made, tmp_path), erased_root.ids(made)
    erased: set[str] = set()
    done = 0
    for step in steps:
        if isinstance(step, str):
            {"build": erased_root.build, "export": erased_root.export, "compact": compacted}[step](root)
            continue
        kind, *values = step
        urls = {url for url in root.texts if f"//{values[0]}/" in url} if kind == "--site" else named(values)
        words = [known[value] for value in values] if kind == "--doc" else values
        if kind == "--file":
            (tmp_path / "list.txt").write_text("# asked for by mail\n" + "\n".join(values))
            words = [str(tmp_path / "list.txt")]
        take_down(root, kind, *words)
        before, held = digests(root), left(root, *urls)
        assert erase(root) == 0
        erased |= urls
        done += len(urls)
        assert left(root, *erased) == {}, step
        require_chained(root, before, held)
    assert done >= len(steps) - steps.count("build") - steps.count("compact") - steps.count("export")
    assert problems(root) == []
    kept = set(root.texts) - erased
    assert {name for names in left(root, *kept).values() for name in names} == kept


def named(values: Sequence[str]) -> set[str]:
    return {url for value in values for url in FORMS.get(value, [value.partition("/?")[0]])}


def compacted(root: ErasedRoot) -> None:
    assert main(["keep", "compact", root.root]) == 0


def require_chained(root: ErasedRoot, before: Mapping[str, str], held: Mapping[str, set[str]]) -> None:
    """Require that this erasure changed nothing but what it has on record, and all that had the documents."""
    last = erasures(root.root)
    number = max(entry.takedown for entry in last)
    objects = [each for entry in last if entry.takedown == number for each in entry.objects]
    after = digests(root)
    gone = {path for path in before if path not in after}
    assert gone == {each.before.path for each in objects if each.before.path in before}
    assert held.keys() <= gone
    assert {path for path in after if before.get(path, after[path]) != after[path]} == set()


def test_a_dry_run_says_what_would_be_done_and_does_nothing(
    root: ErasedRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    take_down(root, "--url", URLS[0])
    before = digests(root)
    capsys.readouterr()
    assert erase(root, "--dry-run", "--json") == 0
    planned = json.loads(capsys.readouterr().out)
    assert digests(root) == before
    assert erase(root, "--json") == 0
    certificate = json.loads(capsys.readouterr().out)
    assert sorted(path for path, *_ in planned["work"]) == sorted(
        each["before"]["path"] for each in certificate["objects"]
    )
    assert planned["objects"] == certificate["counts"]["rewritten"] + certificate["counts"]["removed"]
    sizes = {each["before"]["path"]: each["before"]["bytes"] for each in certificate["objects"] if each["after"]}
    assert planned["rewritten_bytes"] == sum(sizes.values())


def test_the_certificate_can_be_handed_over(root: ErasedRoot, capsys: pytest.CaptureFixture[str]) -> None:
    take_down(root, "--url", URLS[2])
    assert erase(root) == 0
    [path] = Path(root.root, "erasures/certificates").iterdir()
    said = unseal(path.read_bytes(), str(path), "")
    assert said["by"] == ["a steward"]
    asked = said["takedowns"][0]["asked"]
    assert asked == [{"kind": "url", "sha256": hashlib.sha256(URLS[2].encode()).hexdigest()}]
    assert root.wanted(URLS[2]).in_bytes(path.read_bytes()) == set()
    assert URLS[2] not in path.read_text()
    assert said["landed"] == [{"snapshot": DAYS[0], "file": "a.jsonl", "offset": said["landed"][0]["offset"]}]
    capsys.readouterr()
    assert main(["verify", root.root, "--head", said["log"]["head"]]) == 0
    assert erase(root) == 0, "there is nothing left to erase"
    assert len(erasures(root.root)) == len(said["log"]["entries"]) + 1, "the last refers to the certificate"


def test_a_host_is_where_the_certificate_says_and_nowhere_else(
    root: ErasedRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    site = "site1.example"
    take_down(root, "--site", site)
    capsys.readouterr()
    assert erase(root, "--json") == 0
    certificate = json.loads(capsys.readouterr().out)
    assert any("host names in profiles" in line for line in certificate["stays"])
    assert certificate["names_in"]
    for path in search(Path(root.root), Wanted({site: site}, root.tokenizer), VOCABULARIES):
        is_log = path.startswith(("takedowns/", "ledger.sqlite"))
        if is_log or path.endswith(".segment") or path in certificate["names_in"]:  # keys of addresses in history
            continue
        assert path.endswith(".parquet"), path
        for name, column in zip(*_columns(Path(root.root, path)), strict=True):
            assert name == "evidence" or {str(value) for value in column if site in str(value)} <= {f"http://{site}/"}


def _columns(path: Path) -> tuple[list[str], list[list[Any]]]:
    table = pq.read_table(path)
    return table.column_names, [column.to_pylist() for column in table.columns]


def test_a_text_that_is_at_another_address_too_is_named(root: ErasedRoot, capsys: pytest.CaptureFixture[str]) -> None:
    again = Path(root.folder, "landing/third")
    again.mkdir(parents=True)
    (again / "a.jsonl").write_text(json.dumps({"text": root.texts[URLS[0]], "url": "https://mirror.example/"}) + "\n")
    refine_as(root, "third")
    take_down(root, "--url", URLS[0])
    capsys.readouterr()
    assert erase(root, "--json") == 0
    others = json.loads(capsys.readouterr().out)["same_text_elsewhere"]
    assert others == [erased_root.ids(root).get("https://mirror.example/", others[0])]
    assert left(root, URLS[0])
    take_down(root, "--doc", others[0])
    assert erase(root) == 0
    assert left(root, URLS[0]) == {}
    assert problems(root) == []


def test_an_export_that_only_quotes_the_text_stays(root: ErasedRoot) -> None:
    rejected = address(0, 12)
    exports = {path for path in left(root, rejected) if "/exports/" in path}
    assert exports, "the near duplicate that was kept instead has the text, too"
    take_down(root, "--url", rejected)
    assert erase(root) == 0
    assert exports <= digests(root).keys()
    assert problems(root) == []


def test_near_duplicates_of_what_is_taken_down_are_offered(
    root: ErasedRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = address(0, 12), address(0, 13)
    known = erased_root.ids(root)
    take_down(root, "--url", other)
    for step in ("before", "after"):
        capsys.readouterr()
        assert main(["takedown", root.root, "--near", "--json"]) == 0
        [found] = json.loads(capsys.readouterr().out)
        assert (found["id"], found["of"], found["url"]) == (known[one], known[other], one)
        assert found["similarity"] > 0.7, step
        assert erase(root) == 0
    assert main(["takedown", root.root, "--also-near", "--rights"]) == 78
    capsys.readouterr()
    for entries in ([["doc", known[one]]], None):
        assert main(["takedown", root.root, "--also-near", "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts.get("entries") == entries, "the second time nothing is left"


def test_a_document_without_an_address_is_erased_by_its_text(root: ErasedRoot) -> None:
    text = f"{root.texts[address(1, 7)]} of nobody"
    third = Path(root.folder, "landing/third")
    third.mkdir(parents=True)
    line = {"text": text, "title": "the memoirs of an unknown gardener"}
    (third / "a.jsonl").write_text(json.dumps(line) + "\n")
    refine_as(root, "third")
    (root.folder / "text").write_text(text)
    take_down(root, "--text", str(root.folder / "text"))
    wanted = Wanted({"title": line["title"], "text": f"{text[-60:]}"}, root.tokenizer)
    assert {path.split("/")[0] for path in search(Path(root.root), wanted, VOCABULARIES)} >= {"ingest", "extract"}
    assert erase(root) == 0
    held = search(Path(root.root), Wanted({"title": line["title"]}, root.tokenizer), VOCABULARIES)
    assert held == {}
    assert problems(root) == []


def refine_as(root: ErasedRoot, day: str) -> None:
    erased_root.refine(root, day)


def test_work_goes_on_after_an_erasure(root: ErasedRoot) -> None:
    take_down(root, "--url", URLS[0], "--doc", erased_root.ids(root)[address(1, 2)])
    assert erase(root) == 0
    before = digests(root)
    for day in DAYS:
        version = version_log.current(root.root, RECIPE, day)
        for stage in ("extract", "scrub_pii"):
            manifest = read_manifest(root.root, version.manifests[stage])
            assert sum(batch.num_rows for batch in read_shards(root.root, manifest.shards)) == manifest.rows
    assert main(["keep", "vacuum", root.root, "--grace", "0", "--delete", "--limit", "1"]) == 0
    assert (
        not {each.after.path for entry in erasures(root.root) for each in entry.objects if each.after}
        - digests(root).keys()
    )
    assert problems(root) == []
    third = Path(root.folder, "landing/2026-11-21")
    third.mkdir(parents=True)
    lines = [{"text": root.texts[url], "url": f"https://later.example/{at}"} for at, url in enumerate(root.texts)]
    (third / "a.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    refine_as(root, "2026-11-21")
    erased_root.build(root)
    assert problems(root) == []
    assert before.items() - digests(root).items() <= {
        (p, d) for p, d in before.items() if "/gate/" in p or "summaries" in p
    } | {(p, d) for p, d in before.items() if p not in digests(root)}
    assert search(Path(root.root), root.wanted(address(1, 2)), VOCABULARIES) == {}


def test_the_loader_gives_the_same_but_for_what_was_erased(root: ErasedRoot) -> None:
    folder = f"{root.root}/{version_log.current(root.root, DATASET).prefix}"
    dataset = TokenDataset(folder)
    before, state = list(dataset.batches()), dataset.state_at(2)
    take_down(root, "--url", URLS[0])
    assert erase(root) == 0
    again = TokenDataset(folder)
    again.verify()
    after = list(again.batches())
    masked = 0
    for was, now in zip(before, after, strict=True):
        gone = (now["labels"] == IGNORED) & (was["labels"] != IGNORED)
        masked += int(gone.sum())
        assert (now["input_ids"][gone] == again.index.pad_id).all()
        for name in ("input_ids", "labels"):
            assert (now[name][~gone] == was[name][~gone]).all()
        assert {k: v.tolist() for k, v in now.items() if k in ("cu_seqlens", "place", "index", "n_tokens")} == {
            k: v.tolist() for k, v in was.items() if k in ("cu_seqlens", "place", "index", "n_tokens")
        }
    assert masked == len(root.texts[URLS[0]].split()) + 1, "and the end of the document"
    again.load_state_dict(state)
    assert [batch["index"].tolist() for batch in again.batches()] == [batch["index"].tolist() for batch in before[2:]]


@pytest.mark.skipif(not is_installed(), reason="pylance is not installed (requirements-dev.txt has it)")
def test_vectors_and_what_is_stored_with_them_are_erased(tmp_path: Path) -> None:
    made = vector_root(tmp_path)
    assert main(["keep", "index", made.root]) == 0
    row = next(iter(made.stored(DAYS[0]).values()))
    table = Path(made.root, "vectors")
    assert any(row["url"].encode() in path.read_bytes() for path in table.rglob("*") if path.is_file())
    assert main(["takedown", made.root, "--doc", row["id"], *WHY]) == 0
    assert main(["erase", made.root]) == 0
    left_ = [
        path for path in Path(made.root).rglob("*") if path.is_file() and row["text"].encode() in path.read_bytes()
    ]
    assert left_ == []
    assert not any(row["url"].encode() in path.read_bytes() for path in table.rglob("*") if path.is_file())
    version = version_log.current(made.root, "web", DAYS[0])
    shards = read_manifest(made.root, version.refined).shards
    rows = [each for batch in read_shards(made.root, shards) for each in batch.to_pylist() if each["id"] == row["id"]]
    assert [(each["text"], each["url"], each["embedding"]) for each in rows] == [("", None, None)]


@pytest.mark.nightly
def test_a_root_in_a_bucket_is_erased_alike(
    made: ErasedRoot, s3_root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Takes hundreds of objects there and back: only here are objects of a bucket erased."""
    monkeypatch.setenv("REFINERY_LEDGER", str(tmp_path / "ledger.sqlite"))
    for path in Path(made.root).rglob("*"):
        if path.is_file() and path.suffix != ".sqlite":
            storage.put_file(s3_root, str(path.relative_to(made.root)), path)
    assert main(["takedown", s3_root, "--url", URLS[0], *WHY]) == 0
    assert main(["erase", s3_root, "--by", "a steward"]) == 0
    assert verify(s3_root, Scope()).findings.problems == []
    store = storage.connect(s3_root)
    for entry in store.list(""):
        place = tmp_path / "fetched" / entry.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(store.read(entry.path))
    assert search(tmp_path / "fetched", made.wanted(URLS[0]), VOCABULARIES) == {}


# --- Refusals ---------------------------------------------------------------------------------------------------


def test_without_a_takedown_there_is_nothing_to_erase(made: ErasedRoot) -> None:
    assert erase(made) == RecipeError.exit_code


def test_a_second_erasure_says_that_there_is_nothing_to_do(
    root: ErasedRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    take_down(root, "--url", URLS[0])
    assert erase(root) == 0
    first, before = capsys.readouterr().out, digests(root)
    assert erase(root) == 0
    second = capsys.readouterr().out
    assert " rewritten and " in first
    assert " rewritten and " not in second
    assert "nothing to do" in second
    assert digests(root) == before


def test_what_was_erased_stays_taken_down(root: ErasedRoot) -> None:
    take_down(root, "--url", URLS[0])
    assert erase(root) == 0
    take_down(root, "--url", URLS[1])
    undo = ("--undo", "--override", "takedown=a test", "--reason", "a mistake")
    assert main(["takedown", root.root, "--url", URLS[0], *undo]) == RecipeError.exit_code
    assert main(["takedown", root.root, "--url", URLS[1], *undo]) == 0


def test_what_cannot_be_erased_is_named_and_no_certificate_is_given(
    root: ErasedRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    take_down(root, "--url", URLS[0])
    Path(root.root, "notes").mkdir()
    Path(root.root, "notes/a.txt").write_text(root.texts[URLS[0]])
    [damaged, *_] = sorted(Path(root.root).glob("dedup_minhash/*/rejects/*.parquet"))
    before = without_log(root)
    damaged.write_bytes(b"PAR1" + damaged.read_bytes())
    capsys.readouterr()
    assert erase(root, "--dry-run") == ContractError.exit_code
    assert "NOT ERASED notes/a.txt" in capsys.readouterr().out
    assert erase(root, "--json") == ContractError.exit_code
    said = json.loads(capsys.readouterr().out)["left"]
    name = str(damaged.relative_to(root.root))
    assert {"notes/a.txt", name} <= said.keys()
    assert said["notes/a.txt"].startswith("it has text of a document")
    assert [entry for entry in erasures(root.root) if entry.objects] == []
    assert without_log(root).items() ^ before.items() == {
        (name, hashlib.sha256(damaged.read_bytes()).hexdigest()),
        (name, before[name]),
    }, "nothing is erased before all can be"


def test_an_object_that_is_there_again_is_found_and_erased_again(root: ErasedRoot) -> None:
    take_down(root, "--url", URLS[0])
    [path, *_] = sorted(left(root, URLS[0]))
    body = Path(root.root, path).read_bytes()
    assert erase(root) == 0
    Path(root.root, path).parent.mkdir(parents=True, exist_ok=True)
    Path(root.root, path).write_bytes(body)
    assert problems(root)[0].startswith(f"{root.root}/{path}: was erased, and is there")
    assert erase(root) == 0
    assert problems(root) == []
    assert left(root, URLS[0]) == {}


def test_a_changed_log_of_erasures_stops_its_readers(root: ErasedRoot) -> None:
    take_down(root, "--url", URLS[0])
    assert erase(root) == 0
    entry = Path(root.root, "erasures/000000000001.json")
    entry.write_bytes(entry.read_bytes().replace(b'"takedown":1', b'"takedown":2'))
    assert any(problem.startswith(str(entry)) for problem in problems(root))
    shard = erasures_free(root)
    with pytest.raises(ContractError, match=entry.name):
        list(read_shards(root.root, shard.shards))


def erasures_free(root: ErasedRoot) -> Any:
    return read_manifest(root.root, version_log.current(root.root, RECIPE, DAYS[0]).manifests["extract"])


# --- Kills ------------------------------------------------------------------------------------------------------


def victim(root: ErasedRoot, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tests.upkeep.erase_victim", root.root, *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=PROJECT, env=os.environ, check=False)


@pytest.fixture(scope="module")
def undisturbed(
    made: ErasedRoot, tmp_path_factory: pytest.TempPathFactory
) -> tuple[ErasedRoot, dict[str, str], int, int]:
    """A root with a takedown, the objects after its erasure, and how many writes and removals that takes."""
    folder = tmp_path_factory.mktemp("undisturbed")
    taken = copied(made, folder / "taken")
    take_down(taken, "--url", URLS[0])
    done = copied(taken, folder / "done")
    printed = victim(done)
    assert printed.returncode == 0, printed.stderr
    writes, removals = map(int, printed.stdout.split()[-2:])
    assert left(done, URLS[0]) == {}
    return taken, without_log(done), writes, removals


def without_log(root: ErasedRoot) -> dict[str, str]:
    return {path: digest for path, digest in digests(root).items() if not path.startswith("erasures/")}


MOMENTS = [
    ("write", "before", 0.0),
    ("write", "inside", 0.3),
    ("write", "after", 0.6),
    ("write", "before", 0.9),
    ("write", "after", 0.9),
    ("write", "inside", 0.95),
    ("removal", "before", 0.0),
    ("removal", "after", 0.3),
    ("removal", "before", 0.6),
    ("removal", "after", 0.99),
]
SHORT = 3, 7


@pytest.mark.parametrize(
    "moment",
    [pytest.param(at, marks=() if rank in SHORT else pytest.mark.nightly) for rank, at in enumerate(MOMENTS)],
    ids=lambda moment: f"{moment[1]}-{moment[0]}-{moment[2]}",
)
def test_an_erasure_that_is_killed_is_finished_by_the_next(
    undisturbed: tuple[ErasedRoot, dict[str, str], int, int], moment: tuple[str, str, float], tmp_path: Path
) -> None:
    taken, expected, writes, removals = undisturbed
    root = copied(taken, tmp_path)
    what, when, share = moment
    at = int((writes if what == "write" else removals) * share)
    assert victim(root, what, when, str(at)).returncode == -signal.SIGKILL
    killed = [problem for problem in problems(root) if "was erased, and is there" not in problem]
    assert killed == [], "no reader misses anything"
    assert erase(root, "--alone") == 0
    assert without_log(root) == expected
    assert left(root, URLS[0]) == {}
    assert problems(root) == []
