"""What is recorded of a comparison: in the roots of its arms, in the ledger, and by whom a refusal was overridden."""

import json
import shutil
from pathlib import Path

import pytest
from refinery_ablate.comparison import Wanted, judge, prepare
from refinery_ablate.job import PLAN, read_plan
from refinery_ablate.recording import record
from refinery_ablate.statistics import BETTER, SAME, WORSE

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import ContractError, GateRefused, RecipeError
from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.ledger.database import Row
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.ablation_log import LOG, ablations
from pipeline_tasks.sealed import path_of
from tests.ablate import planted

CLOCKED = ("ablated_at",)


def ready(own: tuple[str, str], sets: str, folder: Path, shift: float, small: float | None = None) -> list[str]:
    """Prepare a comparison whose runs have ended; return the command that judges it."""
    prepare(Wanted(own, (sets,), "15m"), folder)
    planted.put_results(folder, read_plan(folder), shift, small)
    return ["ablate", "--datasets", ",".join(own), "--held-out", sets, "--size", "15m", "--to", str(folder)]


def root_of(arm: str) -> str:
    return arm.rpartition("/")[0]


def rows_of(root: str) -> list[Row]:
    with Ledger.open(ledger_of(root)) as ledger:
        return ledger.query("ablations")


def test_a_verdict_is_recorded_once_in_the_root_of_each_arm(
    own: tuple[str, str], sets: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command judges finished runs without torch: another machine may have trained."""
    command = ready(own, sets, tmp_path / "to", -0.05)
    assert main(command) == 0
    said = capsys.readouterr()
    assert BETTER in said.out
    assert str(tmp_path / "to" / "report.html") in said.err
    for arm in own:
        root = root_of(arm)
        assert f"{root}/{LOG.entry_path(1)}" in said.err
        rows = rows_of(root)
        verdict = json.loads((tmp_path / "to" / "verdict.json").read_bytes())
        assert [(f"{row['rate']:g}", row["low"], row["high"]) for row in rows] == [
            (rate, found["low"], found["high"])
            for rate, found in sorted(verdict["differences"].items(), key=lambda pair: -float(pair[0]))
        ]
        row = rows[0]
        assert (row["a_dataset"], row["b_dataset"], row["a_made_from"], row["a_version"]) == (*own, "made_up", 1)
        assert (row["outcome"], row["size"], row["seeds"], row["seconds"]) == (BETTER, "15m", 3, 12 * 36.0)
    version = version_log.current(root_of(own[1]), "corpus")
    assert row["b_fingerprint"] in version.manifests["pack"]
    entry = ablations(root_of(own[1]))[0]
    assert dict(entry.arms[1].manifests) == dict(version.manifests)
    before = rows_of(root_of(own[0]))
    assert main(command) == 0
    assert rows_of(root_of(own[0])) == before


def test_a_ledger_is_rebuilt_with_its_ablations_and_a_cut_log_is_named(
    own: tuple[str, str], sets: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = root_of(own[0])
    assert main(ready(own, sets, tmp_path / "to", 0.0)) == 0
    before = rows_of(root)
    assert before
    Path(ledger_of(root)).unlink()
    assert main(["keep", "ledger", root]) == 0
    assert rows_of(root) == before
    assert main(["verify", root]) == 0
    capsys.readouterr()
    shutil.rmtree(Path(root, "ablations"))
    assert main(["verify", root]) == ContractError.exit_code
    assert LOG.entry_path(1) in capsys.readouterr().out


def test_a_changed_entry_is_named_by_the_rebuilding_and_by_verify(
    own: tuple[str, str], sets: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = root_of(own[0])
    assert main(ready(own, sets, tmp_path / "to", 0.05)) == 0
    path = Path(root, LOG.entry_path(1))
    path.write_text(path.read_text().replace('"worse"', '"better"'))
    capsys.readouterr()
    for command in (["keep", "ledger", root], ["verify", root]):
        assert main(command) == ContractError.exit_code
        assert str(path) in capsys.readouterr().out


def test_an_arm_whose_root_is_gone_is_recorded_by_its_name_in_the_root_of_the_other(
    own: tuple[str, str], sets: str, tmp_path: Path
) -> None:
    ready(own, sets, tmp_path / "to", 0.05)
    raw = json.loads((tmp_path / "to" / PLAN).read_bytes())
    raw["arms"][0]["name"] = f"{tmp_path}/gone/corpus@1"
    (tmp_path / "to" / PLAN).write_text(json.dumps(raw))
    verdict = judge(tmp_path / "to")
    assert list(map(str, record(verdict, tmp_path / "to"))) == [f"{root_of(own[1])}/{LOG.entry_path(1)}"]
    (row, _) = rows_of(root_of(own[1]))
    assert (row["a_recipe"], row["a_version"], row["a_fingerprint"]) == ("corpus", 0, "")
    assert (row["b_recipe"], row["b_version"]) == ("corpus", 1)
    assert not Path(tmp_path, "gone").exists()


def test_who_keeps_the_head_of_the_log_finds_that_it_was_cut(
    own: tuple[str, str], sets: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The ledger is gone, too: nothing in the root repeats what the cut entry said."""
    root = root_of(own[0])
    assert main(ready(own, sets, tmp_path / "to", 0.05)) == 0
    capsys.readouterr()
    assert main(["verify", root, "--json"]) == 0
    head = json.loads(capsys.readouterr().out)["root_heads"]["ablations"]
    assert head["number"] == 1
    assert main(["verify", root, "--head", head["sha256"]]) == 0
    for path in (LOG.entry_path(1), LOG.head_path(1), "ledger.sqlite"):
        Path(root, path).unlink()
    assert main(["verify", root]) == 0
    assert main(["verify", root, "--head", head["sha256"]]) == ContractError.exit_code
    assert head["sha256"] in capsys.readouterr().out


def test_evidence_that_was_changed_or_removed_is_named_by_verify(
    own: tuple[str, str], sets: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = root_of(own[0])
    assert main(ready(own, sets, tmp_path / "to", 0.05)) == 0
    path = Path(root, path_of(ablations(root)[0].evidence))
    sound = path.read_bytes()
    for damage in (sound.replace(b"crawl", b"krawl"), None):
        path.unlink()
        if damage is not None:
            path.write_bytes(damage)
        capsys.readouterr()
        assert main(["verify", root]) == ContractError.exit_code
        assert str(path) in capsys.readouterr().out
        path.write_bytes(sound)
    assert main(["verify", root]) == 0


# --- A gate -------------------------------------------------------------------------------------------------------

REQUIRE = ("--require", "not-worse")


@pytest.mark.parametrize(("shift", "small"), [(-0.05, None), (0.0, 0.002)])
def test_what_is_not_worse_passes_and_needs_no_override(
    own: tuple[str, str], sets: str, tmp_path: Path, shift: float, small: float | None
) -> None:
    command = ready(own, sets, tmp_path / "to", shift, small)
    assert main([*command, *REQUIRE, "--override", "Ada: to be safe"]) == 0
    (row, _) = rows_of(root_of(own[0]))
    assert row["outcome"] in (BETTER, SAME)
    assert row["override_reason"] == ""


@pytest.mark.parametrize(("shift", "small"), [(0.05, None), (-0.05, 0.05)])
def test_what_is_worse_or_not_decidable_is_refused_until_a_person_lets_it_pass(
    own: tuple[str, str], sets: str, tmp_path: Path, shift: float, small: float | None
) -> None:
    command = ready(own, sets, tmp_path / "to", shift, small)
    assert main([*command, *REQUIRE]) == GateRefused.exit_code
    assert main([*command, *REQUIRE, "--override", "Ada:  the legal team wants it "]) == 0
    overrides = [row["override_reason"] for row in rows_of(root_of(own[0]))]
    assert overrides == ["", "", *["Ada: the legal team wants it"] * 2]
    assert main([*command, *REQUIRE]) == GateRefused.exit_code  # an override is of one run
    assert main([*command, *REQUIRE, "--override", "Ada: the legal team wants it"]) == 0
    assert main(command) == 0  # nothing is required
    assert [row["override_reason"] for row in rows_of(root_of(own[0]))] == overrides
    assert {row["outcome"] == WORSE for row in rows_of(root_of(own[0]))} == {small is None}


def test_a_comparison_that_a_person_let_pass_is_not_recorded_again_without_its_override(
    own: tuple[str, str], sets: str, tmp_path: Path
) -> None:
    command = ready(own, sets, tmp_path / "to", 0.05)
    assert main([*command, *REQUIRE, "--override", "Ada: the legal team wants it"]) == 0
    assert main(command) == 0
    assert [entry.override for entry in ablations(root_of(own[0]))] == ["Ada: the legal team wants it"]


@pytest.mark.parametrize(
    "options",
    [
        [*REQUIRE, "--override", "Ada"],
        [*REQUIRE, "--override", ": because"],
        ["--override", "Ada: because"],
        [*REQUIRE, "--size", "smoke"],
    ],
)
def test_an_override_without_a_name_or_reason_and_a_gate_of_smoke_are_refused(
    own: tuple[str, str], sets: str, tmp_path: Path, options: list[str]
) -> None:
    command = ready(own, sets, tmp_path / "to", -0.05)
    assert main([*command, *options]) == RecipeError.exit_code
    assert ablations(root_of(own[0])) == []
