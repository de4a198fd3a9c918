"""Every command that reads a root reads one in which documents were erased: with blank rows in whatever it shows."""

import io
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from pipeline_tasks.ask.known import questions
from pipeline_tasks.cli.main import main, parser_of
from pipeline_tasks.errors import ContractError, RecipeError
from tests import erased_root
from tests.erased_root import DATASET, DAYS, MAIL, RECIPE, URLS, ErasedRoot, address
from tests.stages import rephrasing

pytestmark = pytest.mark.slow

WHY = ("--reason", "a letter", "--override", "takedown=a test", "--engine", "local")
OF = ("--recipe", RECIPE)
CORPUS = ("--recipe", DATASET)
GONE, KEPT = URLS[2], address(0, 8)
"""Documents of the first day, each with an e-mail address; the first is erased."""

WORDS: Mapping[str, Sequence[Sequence[str]]] = {
    "status": [OF],
    "keep access": [()],
    "look versions": [OF, CORPUS],
    "diff": [("1", "2", *OF, "--documents")],
    "look funnel": [OF, CORPUS],
    "look breakdown": [(*OF, "--by", "source"), (*OF, "--sites", "5")],
    "look report": [OF, (*OF, "--plots", "PLOTS")],
    "model cost": [("--recipe", "writing", "--documents", "8")],
    "verify": [(), ("--fast",)],
    "keep sign": [(*CORPUS, "--key", "KEY", "--out", "SIGNED")],
    "disclose": [(*CORPUS, "--out", "DISCLOSED")],
    "plan": [("--target-tokens", "1e6", "--days", "1", "--gpus", "1", "--from", "1", *CORPUS)],
    "look trace": [(*CORPUS, "--random", "5")],
    "look lineage": [OF, CORPUS],
    "look cut": [OF],
    "look find": [("--doc", "ID"), ("--url", GONE), ("--site", "mail.example")],
    "why": [("ID",), (GONE,), (KEPT,), ("a phrase",)],
    "search": [("", *OF, "--where", "chars: {at_least: 0}"), ("a phrase", *OF)],
    "look similar": [("--url", KEPT, *OF)],
    "look map": [(*OF, "--to", "MAP")],
    "document": [("ID", *OF, "--snapshot", DAYS[0])],
    "look duplicates": [("ID", *OF)],
    "export": [
        (*CORPUS, "--format", "text-jsonl", "--to", "EXPORTED"),
        (*OF, "--format", "hub", "--rejects", "texts", "--to", "HUB"),
    ],
    "register": [OF],
    "annotations": [(*OF, "--to", "ANNOTATED")],
    "takedown": [("--list",), ("--near",), ("--dry-run", "--url", KEPT), ("--dry-run", "--rights")],
    "erase": [("--dry-run",)],
    "read": [(*OF, "--kept", "5"), (*OF, "--rejected", "5"), (*OF, "--summary")],
    "look intruder": [(*OF, "--by", "source"), (*OF, "--summary")],
    "rejects": [(*OF, "--stage", stage) for stage in ("ingest", "extract", "dedup_minhash", "scrub_pii")],
    "sql": [(*OF, f"SELECT * FROM {view}") for view in ("kept", "rejects", "quarantine", "redactions", "documents")],
    "look redactions": [OF, (*OF, "--limit", "100", "--document", "")],
    "look contamination": [OF],
    "whatif": [(*OF, "--by", "source", "--where", "chars: {at_least: 200}")],
    "retract": [(DAYS[1], *OF, "--reason", "a test", "--dry-run")],
    "keep vacuum": [()],
    "keep retention": [()],
    "keep index": [()],
    "keep compact": [()],
    "keep upgrade": [()],
    "keep ledger": [()],
}
"""What each command is called with; words in capitals are filled in."""

REMOVED = frozenset({"look report"})
"""Commands that read what an erasure removes as a whole."""

REFUSED = frozenset(
    {"takedown", "whatif", "search", "keep index", "keep retention", "keep sign"}
    | {"look contamination", "look intruder", "look map", "look similar"}
)
"""Commands that may say that something is missing here: vectors, a policy, a column, a library."""


@pytest.fixture(scope="module")
def erased(tmp_path_factory: pytest.TempPathFactory) -> tuple[ErasedRoot, str]:
    """A root with erased documents, and the id of one."""
    root = erased_root.make(tmp_path_factory.mktemp("reading"))
    id_ = erased_root.ids(root)[GONE]
    assert MAIL in GONE
    assert main(["takedown", root.root, "--url", GONE, "--site", "site1.example", *WHY]) == 0
    assert main(["erase", root.root]) == 0
    return root, id_


def writing(folder: Path) -> Path:
    """Return a folder with a recipe whose model writes of every document."""
    rephrasing.install_here()
    asked = {"generator": rephrasing.model(folder), "prompts": {"rewrite": {}}}
    recipes = folder / "recipes"
    recipes.mkdir()
    (recipes / "writing.yaml").write_text(json.dumps({"stages": {"ingest": {}, "extract": {}, "rephrase": asked}}))
    return recipes


def reading() -> list[str]:
    """Return the commands that take a root."""
    found = []
    for name in questions():
        parser = parser_of(name)
        (commands,) = (action.choices for action in parser._actions if action.dest == "command")
        found += [name] if commands[name].get_default("requires_root") else []  # type: ignore[call-overload, index]
    return found


@pytest.mark.parametrize("name", reading())
def test_a_command_reads_a_root_with_erased_documents(
    name: str,
    erased: tuple[ErasedRoot, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert name in WORDS, f"say in WORDS how {name} is called"
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.setenv("REFINERY_CATALOG", f"ducklake:sqlite:{tmp_path / 'lake.sqlite'}")
    monkeypatch.setenv("REFINERY_RECIPES", str(writing(tmp_path)))
    made, id_ = erased
    root = (
        shutil.copytree(made.root, tmp_path / "root")
        if name in ("keep compact", "keep ledger", "keep index", "model cost", "register")
        else made.root
    )
    for words in WORDS[name]:
        for form in ("", "--json")[: 1 if name == "retract" else 2]:
            places = {word: str(tmp_path / f"{word}{form}") for word in words if word.isupper()} | {"ID": id_}
            filled = [*(places.get(word, word) for word in words), *([form] if form else [])]
            code = main([*name.split(), *filled, str(root)])
            said = capsys.readouterr()
            refusals = {0, *([RecipeError.exit_code] if name in REFUSED else [])}
            refusals |= {ContractError.exit_code} if name in REMOVED and "removed by an erasure" in said.err else set()
            assert code in refusals, (filled, said.err)
            assert not erased_root.words_of(made, GONE) & {*said.out.split()}
