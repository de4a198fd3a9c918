"""The policies of the docs: what each role may do with every object of a root, as S3 decides it."""

import json
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.stages import NAMES
from tests.iam import allows, listed
from tests.small_root import SmallRoot

DOCS = Path(__file__).parents[1] / "docs"
ROOT, LANDING = "arn:aws:s3:::refinery/refined/", "arn:aws:s3:::refinery/crawl/"
POLICIES = [
    json.loads(block)
    for block in re.findall(
        r"```json\n(.*?)```", (DOCS / "how-to/people/limit-who-sees-texts.md").read_text(), re.DOTALL
    )
]
VIEWER, CURATOR, STEWARD, PIPELINE = ("viewer", "curator", "steward", "pipeline")
ATTACHED = dict(zip((VIEWER, CURATOR, STEWARD, PIPELINE), POLICIES, strict=True))


def statements(role: str) -> list[dict[str, Any]]:
    """The statements of a role; a curator has those of a viewer, too."""
    own: list[dict[str, Any]] = ATTACHED[role]["Statement"]
    return [*own, *(ATTACHED[VIEWER]["Statement"] if role == CURATOR else [])]


def may(role: str, action: str, arn: str) -> bool:
    """Whether a role may do something with an object: a statement allows it, and none denies it."""
    return allows(statements(role), action, arn)


def reads(role: str, path: str) -> bool:
    return may(role, "s3:GetObject", ROOT + path)


@pytest.fixture(scope="module")
def objects(small_root: SmallRoot) -> list[str]:
    """The objects of a root, and those that a build and a web server put beside them."""
    root = Path(small_root.root)
    own = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file() and path.suffix != ".sqlite"]
    built = ("publish/shards/a.bin", "publish/shards/a.lineage.parquet", "publish/b/exports/mds/index.json")
    return [*own, *built, "access/2026-11-26/120000000000-a.json", "takedowns/000000000001.json", "cache/x/y.segment"]


def test_a_viewer_reads_the_account_and_no_rows(objects: list[str]) -> None:
    rows = [path for path in objects if path.endswith((".parquet", ".segment", ".bin", ".html"))]
    assert len(rows) > 20
    assert [path for path in rows if reads(VIEWER, path)] == []
    account = [path for path in objects if re.search(r"/manifest\.json$|^datasets/|/verdict\.json$", path)]
    assert len(account) > 20
    assert [path for path in account if not reads(VIEWER, path)] == []
    assert [path for path in objects if may(VIEWER, "s3:PutObject", ROOT + path)] == []


def test_a_curator_reads_no_shard_of_a_stage_no_report_and_no_look(objects: list[str]) -> None:
    read = [path for path in objects if reads(CURATOR, path)]
    assert {"publish/shards/a.bin", "publish/b/exports/mds/index.json"} <= {*read}
    hidden = [path for path in read if path.split("/")[0] in NAMES and not re.search(r"manifest\.|verdict\.json", path)]
    assert hidden == []
    assert any("/report-" in path for path in objects)
    assert [path for path in read if "/report-" in path or path.startswith(("access/", "takedowns/"))] == []


def test_a_steward_reads_all_and_the_landing(objects: list[str]) -> None:
    assert [path for path in objects if not reads(STEWARD, path)] == []
    assert may(STEWARD, "s3:GetObject", f"{LANDING}2026-11-26/a.warc.gz")
    assert not may(CURATOR, "s3:GetObject", f"{LANDING}2026-11-26/a.warc.gz")


@pytest.mark.parametrize("role", [VIEWER, CURATOR, STEWARD])
def test_people_put_looks_alone_and_remove_nothing(role: str, objects: list[str]) -> None:
    put = {path.split("/")[0] for path in objects if may(role, "s3:PutObject", ROOT + path)}
    assert put == (set() if role == VIEWER else {"access"})
    assert not any(may(role, action, ROOT + path) for path in objects for action in ("s3:DeleteObject", "s3:*"))


def test_the_pipeline_removes_no_look(objects: list[str]) -> None:
    [statement] = ATTACHED[PIPELINE]["Statement"]
    denied = [path for path in objects if fnmatchcase(ROOT + path, statement["Resource"])]
    assert statement["Effect"] == "Deny"
    assert denied == ["access/2026-11-26/120000000000-a.json"]


def test_policies_and_the_table_name_prefixes_that_roots_have() -> None:
    """Those of the listing of what is stored, or a stage."""
    tree = (DOCS / "reference/formats.md").read_text().split("```text\n")[1].split("```")[0]
    known = {line.split("/")[0] for line in tree.splitlines() if not line.startswith(" ")} | {"vectors", *NAMES}
    page = (DOCS / "how-to/people/limit-who-sees-texts.md").read_text()
    table = page.split("| prefix |")[1].split("\n\n")[0]
    of_table = {each.split("/")[0] for each in re.findall(r"`([a-z<*][^`]*/[^`]*)`", table)}
    of_policies = {
        pattern.removeprefix(ROOT).split("/")[0]
        for policy in POLICIES
        for each in policy["Statement"]
        for pattern in listed(each["Resource"])
        if pattern.startswith(ROOT)
    }
    unlisted = {"readings", "intruders"}  # answers of readers
    assert (of_table | of_policies) - {"*"} <= known | unlisted
    assert {"<stage>", "publish", "access", "takedowns", "erasures"} <= of_table
