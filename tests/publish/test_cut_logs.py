"""A log that was cut together with its heads, or removed, is noticed: the ledger and pinned lists are its witnesses."""

import json
import shutil
from pathlib import Path

import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import ContractError
from pipeline_tasks.inspect.verify.verification import verify
from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.ledger.lost_log import require_takedowns
from pipeline_tasks.sealed import seal, sha256
from pipeline_tasks.store.log_chain import Log, append, dataset_log, head_body, read_chain
from pipeline_tasks.store.taken_down import FOLDER, LOG, takedowns
from pipeline_tasks.store.taken_down_lists import LISTS
from tests.chain import reply
from tests.small_root import DAYS, RECIPE, SmallRoot, refine

pytestmark = pytest.mark.slow

SITES = ("gone.example", "left.example")


@pytest.fixture
def root(small_root: SmallRoot, tmp_path: Path) -> str:
    """A copy of the small root, in which two sites were taken down."""
    copy = str(shutil.copytree(small_root.root, tmp_path / "root"))
    for site in SITES:
        assert main(["takedown", copy, "--site", site, "--reason", "a letter"]) == 0
    return copy


def cut(root: str, log: Log, *numbers: int) -> None:
    for number in numbers:
        Path(root, log.entry_path(number)).unlink()
        Path(root, log.head_path(number)).unlink()


def problems(root: str) -> list[str]:
    return [problem.object for problem in verify(root).findings.problems]


def land(root: str, small: SmallRoot, day: str) -> None:
    reply("land", root=root, recipe=RECIPE, snapshot=day, input=str(small.landing / day))


@pytest.mark.parametrize("removed", [(2,), (1, 2)])
def test_takedowns_that_were_removed_with_their_heads_are_named_and_not_forgotten(
    removed: tuple[int, ...], root: str, small_root: SmallRoot
) -> None:
    cut(root, LOG, *removed)
    assert problems(root) == [f"{root}/{LOG.entry_path(min(removed))}"]
    with pytest.raises(ContractError, match=f"{root}/{FOLDER} was removed or cut"):
        land(root, small_root, DAYS[0])
    for words in (["--site", "other.example", "--reason", "b"], ["--list"]):
        assert main(["takedown", root, *words]) == ContractError.exit_code
    assert len(takedowns(root)) == 2 - len(removed), "the next takedown does not take the number of a lost one"


def test_the_way_out_is_the_ledger_made_again(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    cut(root, LOG, 2)
    assert main(["keep", "ledger", root]) == 0
    assert problems(root) == []
    assert main(["takedown", root, "--site", SITES[1], "--reason", "again"]) == 0
    require_takedowns(root, RECIPE)


def test_a_ledger_is_rebuilt_with_its_takedowns(root: str) -> None:
    Path(ledger_of(root)).unlink()
    assert problems(root) == []
    assert main(["keep", "ledger", root]) == 0
    with Ledger.open(ledger_of(root)) as ledger:
        assert [(row["number"], row["entries"], row["undo"]) for row in ledger.query("takedowns")] == [
            (1, 1, 0),
            (2, 1, 0),
        ]


def test_a_ledger_of_several_roots_is_a_witness_of_each(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFINERY_LEDGER", str(tmp_path / "shared.sqlite"))
    (tmp_path / "other").mkdir()
    for site in SITES:
        assert main(["takedown", str(tmp_path / "other"), "--site", site, "--reason", "a letter"]) == 0
    cut(root, LOG, 2)
    assert problems(root) == []
    cut(str(tmp_path / "other"), LOG, 2)
    with pytest.raises(ContractError, match=r"the ledger .*shared\.sqlite has entry 2"):
        require_takedowns(str(tmp_path / "other"))


def test_a_landing_is_a_witness_where_the_ledger_is_gone(
    root: str, small_root: SmallRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    """The list that the newest landing pins has both sites; what was taken down cannot come back."""
    refine(SmallRoot(root, small_root.landing), DAYS[1])
    Path(ledger_of(root)).unlink()
    cut(root, LOG, 2)
    assert problems(root) == [f"{root}/{FOLDER}"]
    with pytest.raises(ContractError, match=f"lacks site {SITES[1]} of entry 2"):
        require_takedowns(root, RECIPE)
    shutil.rmtree(Path(root, FOLDER))
    assert all(problem.startswith(f"{root}/{FOLDER}") for problem in problems(root))
    with pytest.raises(ContractError, match="lacks every entry"):
        require_takedowns(root, RECIPE)


def test_a_list_that_was_changed_is_named(root: str, small_root: SmallRoot) -> None:
    refine(SmallRoot(root, small_root.landing), DAYS[1])
    (path,) = Path(root, LISTS).iterdir()
    body = path.read_bytes()
    path.write_bytes(body[:-1] + b"x")
    assert problems(root) == [str(path)]
    path.unlink()
    assert problems(root) == [str(path)]


@pytest.mark.parametrize("removed", [(4,), (1, 2, 3, 4)])
def test_verify_names_a_datasets_log_that_was_cut_with_its_heads(removed: tuple[int, ...], root: str) -> None:
    cut(root, dataset_log(RECIPE), *removed)
    assert f"{root}/{dataset_log(RECIPE).entry_path(min(removed))}" in problems(root)


def test_a_ledger_that_cannot_be_read_is_no_problem_of_a_log(root: str) -> None:
    Path(ledger_of(root)).write_bytes(b"no database" * 1000)
    report = verify(root)
    assert report.findings.problems == []
    assert any("no witness" in note for note in report.findings.notes)


def test_verify_names_a_log_that_was_removed_as_a_whole(root: str) -> None:
    """It looked for recipes in what was removed, and was content with the others."""
    log = dataset_log(RECIPE)
    shutil.rmtree(Path(root, log.folder))
    assert problems(root)[0] == f"{root}/{log.entry_path(1)}"


@pytest.fixture
def outside(root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The root, whose ledger is kept outside of it."""
    monkeypatch.setenv("REFINERY_LEDGER", str(tmp_path / "outside" / "ledger.sqlite"))
    with Ledger.open(ledger_of(root)) as ledger:
        for log in (dataset_log(RECIPE), LOG):
            ledger.record_log(root, log)
    return root


def test_a_root_that_was_rolled_back_is_named_by_a_ledger_that_was_not(outside: str, tmp_path: Path) -> None:
    earlier = shutil.copytree(outside, tmp_path / "earlier")
    assert main(["takedown", outside, "--site", "later.example", "--reason", "a letter"]) == 0
    assert problems(outside) == []
    shutil.rmtree(outside)
    shutil.move(earlier, outside)
    assert problems(outside) == [f"{outside}/{LOG.entry_path(3)}"]


@pytest.mark.parametrize("log", [dataset_log(RECIPE), LOG])
def test_a_log_that_was_written_anew_with_its_heads_is_named_by_the_ledger(log: Log, outside: str) -> None:
    chain = read_chain(outside, log)
    shutil.rmtree(Path(outside, log.folder) if log is not LOG else Path(outside, FOLDER, "heads"))
    for path in Path(outside, log.folder).glob("*.json"):
        path.unlink()
    for entry in chain:
        fields = {name: value for name, value in entry.fields.items() if name not in ("number", *log.facts)}
        assert append(outside, log, read_chain(outside, log), fields | {"at": "2026-01-01T00:00:00+00:00"})
    assert problems(outside)[0] == f"{outside}/{log.entry_path(1)}"


def rewritten(path: Path) -> None:
    """Change a field of a sealed entry, and seal it anew."""
    path.write_bytes(seal({**json.loads(path.read_bytes()), "reason": "another"}))


def changed_head(path: Path) -> None:
    """Change a digit, so that it still looks like the head of an entry."""
    body = path.read_text()
    path.write_text(f"{'0' if body[0] != '0' else '1'}{body[1:]}")


@pytest.mark.parametrize("log", [dataset_log(RECIPE), LOG])
def test_of_an_entry_its_head_and_the_ledger_the_one_is_named_that_two_contradict(log: Log, root: str) -> None:
    """A damaged last head accused the entry, which was right."""
    last = max(read_chain(root, log), key=lambda entry: entry.number)
    head, entry = Path(root, log.head_path(last.number)), Path(root, log.entry_path(last.number))
    right = entry.read_bytes()
    changed_head(head)
    [problem] = verify(root).findings.problems
    assert (problem.object, problem.heal.count(last.digest)) == (str(head), 1)
    head.write_bytes(head_body(last.digest))
    rewritten(entry)
    [problem] = verify(root).findings.problems
    assert (problem.object, problem.expected) == (str(entry), f"SHA-256 {last.digest}")
    assert sha256(entry.read_bytes()) not in problem.heal, "two say that it is wrong"
    entry.write_bytes(right)
    Path(ledger_of(root)).unlink()
    changed_head(head)
    [problem] = verify(root).findings.problems
    assert "or if it is right, store its digest" in problem.heal, "nothing says which of the two is right"
