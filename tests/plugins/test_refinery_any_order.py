"""Stages in any legal order: who may not see personal data is shown none, and funnel, line and disclosure add up.

It alone asks every route of a published day and of a build for a planted address, which takes some 8 s for an order.
"""

import html
import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import HealthCheck, Phase, assume, example, given, settings
from hypothesis import strategies as st
from refinery_rights.disclose.about import About
from refinery_rights.disclose.facts import collected

from pipeline_tasks.cli.main import main
from pipeline_tasks.inspect.funnel import funnel
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import parse_recipe
from pipeline_tasks.run.recipe_faults import order_faults
from pipeline_tasks.sealed import path_of
from pipeline_tasks.store.reading import is_cleared, line_of, read_manifest, read_shards
from tests.chain import How, build_of, built, refined
from tests.examples import fewest_examples
from tests.test_access_policies import CURATOR, reads

MARK = "kate.planted"
MAIL = f"{MARK}@mail.example.com"
CLEARS = "scrub_pii"
STEPS: dict[str, dict[str, Any]] = {
    "filter_url": {},
    "filter_language": {"keep": ["en"], "threshold": 0.3},
    "dedup_url": {},
    "dedup_exact": {"buckets": 2},
    "decontaminate": {},
    "scrub_pii": {},
    "enrich": {},
}
ISSUE = ("dedup_exact", "decontaminate", CLEARS, "enrich")
"""The order in which a curator saw what `decontaminate` kept."""

orders = st.sets(st.sampled_from(sorted(STEPS)), min_size=3).flatmap(
    lambda chosen: st.permutations(sorted({*chosen, "dedup_exact"}))
)


def landed(folder: Path) -> Path:
    """Write a day with kept pages, a copy, a page of a bad site and one in German, all with an address."""
    day = folder / "2026-11-19"
    day.mkdir(parents=True)
    words = "The harbor was quiet in the morning and the boats went out to sea with the tide before noon"
    texts = [f"{words}, says the keeper of boat number {at}. Write to {MAIL} if you have seen it." for at in range(6)]
    german = f"Der Hafen war am Morgen ruhig und die Boote fuhren mit der Flut hinaus. Schreiben Sie an {MAIL} bitte."
    pages = [(text, f"https://example.org/{MAIL}/{at}") for at, text in enumerate(texts)]
    pages += [(texts[0], "https://example.org/again"), (texts[1] + " bad", "https://bad.example/a")]
    pages += [(german, "https://example.org/de"), ("short", f"https://example.org/{MAIL}")]
    lines = [json.dumps({"text": text, "url": url}) for text, url in pages]
    (day / "a.jsonl").write_text("\n".join(lines) + "\n")
    return day


def published(folder: Path, order: tuple[str, ...]) -> version_log.Version:
    """Refine a day by these stages, and build from it; return the version of the day."""
    stages = {"ingest": {}, "extract": {"min_chars": 20}} | {stage: STEPS[stage] for stage in order}
    recipe = folder / "tiny.yaml"
    recipe.write_text(yaml.safe_dump({"name": "tiny", "stages": stages}, sort_keys=False))
    version = refined(str(folder / "root"), str(landed(folder / "crawl")), How(recipe=str(recipe))).version
    built(str(folder / "root"), build_of("tiny", {"train": {"vocab_size": 300, "min_bytes": 100}}))
    return version


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The root of the pages until a run has made one."""
    return tmp_path


# --- What is shown ----------------------------------------------------------------------------------------------------

VALUES = {
    **dict.fromkeys(("phrase", "text"), ("harbor",)),
    **dict.fromkeys(("url", "following"), ("https://example.org/again",)),
    **dict.fromkeys(("by", "across", "column", "group", "where"), ("url", "language")),
    **dict.fromkeys(("token", "start", "after", "kept", "rejected", "seed", "number"), ("1",)),
}
"""What a visitor writes in fields of these names; into others the id of a document, or a stage."""


def addresses(app: Any, root: str, ids: list[str]) -> Iterator[str]:
    """Yield addresses of every route that is read, with each of its fields by itself."""
    version = version_log.current(root, "tiny")
    stored = [*map(path_of, version.manifests.values()), version.report, version_log.version_path("tiny", 1)]
    known = {
        "recipe": ["tiny"],
        "snapshot": [version.snapshot],
        "path": stored,
        "stage": [*version.manifests],
        "kind": ["csv", "parquet", "jsonl"],
        "number": ["1"],
        "name": ["refinery.css"],
    }
    for route in app.routes:
        if "GET" not in route.methods:
            continue
        places = [route.path]
        for field in re.findall(r"{(\w+)(?::path)?}", route.path):
            places = [re.sub(rf"{{{field}(:path)?}}", value, place) for place in places for value in known[field]]
        places += [place.replace("tiny/2026-11-19", "corpus/build") for place in places if "tiny/" in place]
        fields = [parameter.name for parameter in route.dependant.query_params]
        fields += [each.name for inner in route.dependant.dependencies for each in inner.query_params]
        for place in places:
            yield place
            many = fields if len(places) < 9 else ()  # a file has no fields
            for field in many:
                for value in VALUES.get(field, ids):
                    yield f"{place}?{field}={quote(value)}"


def show_nothing(app: Any, visitor: Any, root: str, ids: list[str]) -> list[str]:
    """The addresses at which a viewer or a curator sees the mark, other than what they asked for."""
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from airflow.api_fastapi.core_api.security import get_user

    shown = []
    for role in ("VIEWER", "USER"):
        app.dependency_overrides[get_user] = lambda role=role: SimpleAuthManagerUser(username="eve", role=role)
        for address in addresses(app, root, ids):
            body = html.unescape(visitor.get(address, follow_redirects=False).text)
            if MARK in body and MARK not in address:
                shown.append(f"{role} {address}")
    return shown


def held_by_curators(root: str) -> list[str]:
    """The objects with the mark that a curator's policy lets read, by any tool or command."""
    paths = [path for path in Path(root).rglob("*") if path.is_file()]
    own = [path for path in paths if reads(CURATOR, path.relative_to(root).as_posix())]
    assert any("/publish/" in str(path) for path in own)
    return [str(path) for path in own if MARK in _content(path)]


def _content(path: Path) -> str:
    return str(pq.read_table(path).to_pylist()) if path.suffix == ".parquet" else path.read_bytes().decode("latin-1")


@settings(
    max_examples=fewest_examples.max_examples // 5,
    phases=(Phase.explicit, Phase.generate),
    deadline=None,
    suppress_health_check=[*HealthCheck],
)
@example(order=ISSUE)
@given(order=orders.map(tuple))
def test_no_page_or_object_shows_personal_data_that_a_recipe_replaces(
    order: tuple[str, ...], app: Any, visitor: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stages = {"ingest": {}, "extract": {}} | {stage: STEPS[stage] for stage in order}
    assume(not [*order_faults(parse_recipe({"name": "tiny", "stages": stages}, "tiny.yaml"))])
    folder = tmp_path_factory.mktemp("order")
    version, root = published(folder, order), str(folder / "root")
    adds_up(root, version, order)
    batches = read_shards(root, read_manifest(root, version.refined).shards, ["id"])
    ids = [str(name) for batch in batches for name in batch.column("id").to_pylist()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REFINERY_ROOT", root)
        shown = show_nothing(app, visitor, root, ids[:1])
    own = [line for line in shown if CLEARS in order or "/sample/" in line]
    assert (order, own) == (order, [])
    assert (order, held_by_curators(root) if CLEARS in order else []) == (order, [])


# --- What adds up -----------------------------------------------------------------------------------------------------


def adds_up(root: str, version: version_log.Version, order: tuple[str, ...]) -> None:
    """Check the line of a version's stages, its funnel and its disclosure against the order of the recipe."""
    expected = ["ingest", "extract", *order]
    assert main(["verify", root]) == 0
    assert [*version.stages] == ["land", *expected]
    assert path_of(version.refined).startswith(f"{expected[-1]}/")
    last = read_manifest(root, version.refined)
    assert [each.stage for each in line_of(root, last)] == ["land", *expected][::-1]
    behind = expected.index(CLEARS) if CLEARS in order else len(expected)
    cleared = [stage for stage in expected if is_cleared(root, read_manifest(root, version.manifests[stage]))]
    assert cleared == expected[behind:]
    steps = funnel(root, version)
    assert [step["stage"] for step in steps] == expected
    for step, following in pairwise(steps):
        assert following["rows_in"] == step["rows"]
    for step in steps:
        lost = sum(step["rejected"].values()) + sum(step["quarantined"].values())
        assert step["rows_in"] == step["rows"] + lost
    assert version.documents == steps[-1]["rows"] == last.rows
    with collected(root, version, About()) as facts:
        assert [total.stage for total in facts.stages] == expected
        assert [(total.rows_in, total.rows) for total in facts.stages] == [(s["rows_in"], s["rows"]) for s in steps]
        assert facts.total.documents == version.documents
    with collected(root, version_log.current(root, "corpus"), About()) as facts:
        building = ["tokenize", "select", "shuffle", "takedown", "pack"]
        assert [total.stage for total in facts.stages] == [*expected, *building]
