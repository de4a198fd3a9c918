"""A verdict at its place is not believed because it is there: each gate judges again, and so does `verify`."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.gate.verdicts import Verdict, judged_again, read_verdict
from pipeline_tasks.inspect.verify.findings import Findings
from pipeline_tasks.inspect.verify.verdicts import check_verdicts
from pipeline_tasks.manifest import fingerprint_in
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import PUBLISH
from pipeline_tasks.sealed import path_of
from pipeline_tasks.service.requests.gates import JudgeReply
from pipeline_tasks.service.verbs import verbs
from pipeline_tasks.upkeep.zone_users import engine_policy
from tests.chain import reply, reply_type
from tests.gate.samples import bad, healthy, judged, kept, stored
from tests.gate.test_snapshots import stage
from tests.iam import allows
from tests.refining import resealed

OVERRIDE = "Ada: a forum with short pages"


def of_stage(root: Path) -> dict[str, Any]:
    return {"manifest": stored(root, kept(healthy("extract", 60), 0.1))}


def of_snapshot(root: Path) -> dict[str, Any]:
    ingest = stored(root, stage("ingest", 320))
    made_of = {"parents": (fingerprint_in(ingest),), "parent_digests": ("0" * 64,)}
    extract = stored(root, replace(stage("extract", 320, too_short=320), **made_of))
    return {"manifests": {"ingest": ingest, "extract": extract}}


def of_recipe(root: Path) -> dict[str, Any]:
    landed = stored(root, healthy("ingest"))
    steps = [{"stage": "ingest", "params": {}}]
    return {"manifest": landed, "steps": steps, "requires": {"verdict": "not-worse", "beside": "base"}}


REFUSED: Mapping[str, Callable[[Path], dict[str, Any]]] = {
    "judge": of_stage,
    "judge_snapshot": of_snapshot,
    "judge_recipe": of_recipe,
}
"""What each request that judges is asked, so that it refuses."""


def forge(root: Path, **said: object) -> None:
    """Let every stored verdict say something else, in a form that is whole."""
    for path in root.rglob("gate/*/verdict.json"):
        path.chmod(0o644)
        resealed(path, **{"outcome": "pass", "failures": [], "undecided": [], "override": "", **said})


def test_every_request_that_judges_is_tried() -> None:
    assert {*REFUSED} == {verb for verb, known in verbs().items() if reply_type(known.request) is JudgeReply}


@pytest.mark.parametrize("verb", REFUSED)
def test_a_verdict_that_was_forged_is_judged_again(verb: str, tmp_path: Path) -> None:
    asked = {"root": str(tmp_path), "recipe": "mine", "snapshot": "landing", **REFUSED[verb](tmp_path)}
    first = reply(verb, **asked)
    assert first["outcome"] == "refuse"
    assert reply(verb, **asked) == first
    accepted = reply(verb, **asked, override=OVERRIDE)
    assert (accepted["outcome"], read_verdict(str(tmp_path), accepted["verdict"]).override) == ("warn", OVERRIDE)
    forge(tmp_path)
    page = tmp_path / first["docs"]
    page.chmod(0o644)
    page.write_text("all is well")
    again = reply(verb, **asked)
    assert (again["outcome"], again["failures"], again["lines"]) == ("refuse", first["failures"], first["lines"])
    assert "all is well" not in (tmp_path / again["docs"]).read_text()
    assert reply(verb, **asked) == again, "its place follows from what it says"
    still = reply(verb, **asked, override=OVERRIDE)
    assert (still["outcome"], read_verdict(str(tmp_path), still["verdict"]).override) == ("warn", OVERRIDE)


@pytest.mark.parametrize("suite", ["extract", "dedup_minhash", "scrub_pii", "shuffle"])
def test_a_verdict_is_the_same_by_plain_comparisons(suite: str, tmp_path: Path) -> None:
    for manifest, previous in ((healthy(suite), None), *islice(bad(suite), 3)):
        verdict = judged(tmp_path, manifest, previous)
        assert judged_again(str(tmp_path), verdict) == verdict


def problems(root: Path, gate: str, verdict: Verdict, referred: str) -> list[str]:
    """What `verify` finds wrong with a version that names a verdict."""
    return [problem.problem for problem in verified(root, gate, verdict, referred).problems]


def verified(root: Path, gate: str, verdict: Verdict, referred: str) -> Findings:
    """What `verify` finds of a version that names a verdict."""
    fields = {"number": 1, "recipe": "mine", "snapshot": "day", "landing": "", "prefix": "p"}
    sizes = {"documents": 0, "tokens": 0, "sequences": 0}
    manifests = {verdict.manifest.partition("/")[0]: verdict.manifest}
    version = version_log.Version(**fields, **sizes, manifests=manifests, verdicts={gate: referred})
    findings = Findings()
    check_verdicts(str(root), version, {}, findings)
    return findings


@pytest.mark.parametrize("said", [{"bounds": {"rows": {"min_value": 0}}}, {"override": OVERRIDE}])
def test_verify_says_of_a_verdict_on_another_question_that_it_is_not_judged_again(
    said: dict[str, Any], tmp_path: Path
) -> None:
    asked = {"root": str(tmp_path), "recipe": "mine", "snapshot": "day", **of_stage(tmp_path)}
    referred = path_of(reply("judge", **asked)["verdict"])
    verdict = read_verdict(str(tmp_path), referred)
    assert verified(tmp_path, "extract", verdict, referred).notes == []
    forge(tmp_path, **said)
    [note] = verified(tmp_path, "extract", verdict, referred).notes
    assert note.startswith(f"{tmp_path}/{referred} is not judged again")


@pytest.mark.parametrize("verb", ["judge", "judge_snapshot"])
def test_verify_judges_again_what_was_published(verb: str, tmp_path: Path) -> None:
    asked = {"root": str(tmp_path), "recipe": "mine", "snapshot": "day", **REFUSED[verb](tmp_path)}
    reference = reply(verb, **asked, override=OVERRIDE)["verdict"]
    verdict = read_verdict(str(tmp_path), reference)
    gate = PUBLISH if verb == "judge_snapshot" else "extract"
    assert problems(tmp_path, gate, verdict, reference) == []
    forge(tmp_path, override=OVERRIDE)
    assert problems(tmp_path, gate, verdict, path_of(reference)) == ["is not what its gate says of its manifest"]


@pytest.mark.parametrize("root", ["s3://corpus/team/root", "s3://corpus"])
def test_no_engine_may_write_a_verdict_or_its_page(root: str, tmp_path: Path) -> None:
    verdict = judged(tmp_path, healthy("extract"))
    policy = engine_policy("s3://crawls/landing", root)["Statement"]
    place = f"arn:aws:s3:::{root.removeprefix('s3://')}/"
    for path in (verdict.path, verdict.docs):
        assert allows(policy, "s3:GetObject", place + path)
        assert not any(allows(policy, action, place + path) for action in ("s3:PutObject", "s3:DeleteObject"))
    assert allows(policy, "s3:PutObject", place + path_of(verdict.manifest))
