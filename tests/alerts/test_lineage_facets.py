"""Facets say of each stage of two real roots what its manifest has: columns, rows, and how rows are related."""

import importlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pipeline_tasks.alerts import lineage_facets
from pipeline_tasks.alerts.lineage_facets import ROW_LINEAGE, ROW_LINEAGE_SCHEMA, described
from pipeline_tasks.alerts.open_lineage import Lineage, Work, manifest_dataset, run_event
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.sealed import path_of, sha256
from pipeline_tasks.store.reading import read_manifest
from tests import small_build
from tests.documents import documents
from tests.offspring import UNFOLDER, WRITER, brought, ids_of
from tests.offspring import documents as given
from tests.refining import commit_parent
from tests.refining import refined as refined_by
from tests.small_root import DAYS, RECIPE, SmallRoot

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "lineage.md"

SCHEMA = json.loads(Path(lineage_facets.__file__).with_name("row_lineage.schema.json").read_text(encoding="utf-8"))

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Told:
    """The events of the stages of a version, and their manifests, by stage; and the root."""

    root: str
    recipe: str
    manifests: Mapping[str, str]
    events: Mapping[str, Event]

    def output(self, stage: str) -> dict[str, Any]:
        [output] = self.events[stage]["outputs"]
        return dict(output)

    def rows(self, stage: str) -> dict[str, Any]:
        return dict(self.output(stage)["outputFacets"][ROW_LINEAGE])

    def columns(self, stage: str) -> dict[str, dict[str, str]]:
        """Return from which columns each column comes, and how."""
        fields = self.output(stage)["facets"]["columnLineage"]["fields"]
        return {
            column: {each["field"]: each["transformations"][0]["subtype"] for each in of["inputFields"]}
            for column, of in fields.items()
        }

    def manifest(self, stage: str) -> Manifest:
        return read_manifest(self.root, self.manifests[stage])


def event_of(root: str, read: list[str], made: list[str], recipe: str = RECIPE, **of: str) -> Event:
    """Return the event of a run of a stage that read and made these manifests."""
    plain = Lineage(*([manifest_dataset(root, recipe, each) for each in side] for side in (read, made)))
    stage = (made or read)[0].partition("/")[0]
    work = Work("refinery", "refine", "manual__1", stage, f"{stage}.refine -1 3")
    event = run_event("COMPLETE", "2026-11-20T01:02:03Z", work, described(root, plain, **of))
    assert json.loads(json.dumps(event)) == event
    return event


def told(root: str, recipe: str, snapshot: str) -> Told:
    version = version_log.current(root, recipe, snapshot) if snapshot else version_log.current(root, recipe)
    order = list(version.stages)
    assert order[0] in ("land", "compose")
    events = {order[0]: event_of(root, [], [version.manifests[order[0]]], recipe, snapshot=snapshot)}
    for before, stage in pairwise(order):
        one, other = version.manifests[before], version.manifests[stage]
        events[stage] = event_of(root, [one], [other], recipe, snapshot=snapshot)
    return Told(root, recipe, version.manifests, events)


@pytest.fixture(scope="module")
def refined(small_root: SmallRoot) -> Told:
    return told(small_root.root, RECIPE, DAYS[1])


@pytest.fixture(scope="module")
def built(small_root: SmallRoot, tmp_path_factory: pytest.TempPathFactory) -> Told:
    small = small_build.copied(small_root, tmp_path_factory.mktemp("built"))
    small_build.build(small)
    return told(small.root, small_build.DATASET, "")


@pytest.fixture(scope="module", params=["refined", "built"])
def either(request: pytest.FixtureRequest) -> Told:
    version: Told = request.getfixturevalue(request.param)
    return version


def test_counts_are_those_of_the_manifest(either: Told) -> None:
    for stage in list(either.events)[1:]:
        manifest, rows = either.manifest(stage), either.rows(stage)
        [read] = either.events[stage]["inputs"]
        statistics = either.output(stage)["outputFacets"]["outputStatistics"]
        assert (statistics["rowCount"], statistics["size"]) == (manifest.rows, manifest.bytes)
        assert read["inputFacets"]["inputStatistics"]["rowCount"] == manifest.rows_in == rows["rowsIn"]
        assert (rows["rejected"], rows["quarantined"]) == (manifest.rejected, manifest.quarantined)
        assert rows["written"]["count"] == manifest.rows
        path = Path(either.root) / path_of(either.manifests[stage])
        assert rows["written"]["manifest"] == {
            "path": str(path.relative_to(either.root)),
            "sha256": sha256(path.read_bytes()),
        }


def test_the_way_of_a_row_is_unbroken(either: Told) -> None:
    """What a stage reads is what the one before it wrote: the same dataset, version, columns and digest."""
    for before, stage in pairwise(either.events):
        [read], written = either.events[stage]["inputs"], either.output(before)
        assert (read["namespace"], read["name"]) == (written["namespace"], written["name"])
        assert read["facets"].get("schema") == written["facets"].get("schema")
        assert read["facets"]["version"] == written["facets"]["version"]
        [manifest] = either.rows(stage)["read"]["manifests"]
        assert manifest["path"] == read["facets"]["version"]["datasetVersion"]


def test_the_relation_follows_from_what_was_counted(refined: Told, built: Told) -> None:
    assert {stage: refined.rows(stage)["relation"] for stage in list(refined.events)[1:]} == {
        "ingest": "1:N",
        "extract": "1:1",
        "dedup_exact": "N:1",
        "dedup_minhash": "1:1",  # it rejected none
    }
    assert refined.rows("dedup_exact")["rejected"]
    assert {stage: built.rows(stage)["relation"] for stage in built.events if stage != "compose"} == {
        "tokenize": "1:1",
        "select": "1:1",
        "mix": "1:1",
        "shuffle": "1:N",
        "takedown": "1:1",
        "pack": "N:M",
    }
    files, records = refined.rows("ingest")["read"], refined.rows("ingest")["written"]
    assert (files["unit"], files["count"], files["keys"]) == ("file", 2, [["snapshot", "file"]])
    assert records["keys"] == [["snapshot", "file", "offset"]]
    assert sum(refined.rows("ingest")["quarantined"].values()) == 1
    assert refined.rows("extract")["written"]["keys"] == [["id"], ["snapshot", "file", "offset"]]
    assert built.rows("pack")["written"]["keys"] == [["pieces.id"]]


def test_tokens_and_uses_are_conserved(built: Told) -> None:
    mix, shuffle, tokens = built.rows("mix"), built.rows("shuffle"), built.rows("pack")["tokens"]
    assert mix["written"]["uses"] == shuffle["written"]["count"] > mix["written"]["count"]
    assert tokens["read"] == tokens["written"] + tokens["rejected"] > 0


def test_copies_that_were_compared_and_are_none_leave_each_row_as_it_is(tmp_path: Path) -> None:
    from pipeline_tasks.testing.refining import refined as refine

    parent = commit_parent(tmp_path, [documents(["one text", "another text"])])
    path, manifest = refine(str(tmp_path), "dedup_exact", parent, {})
    assert manifest.rejected == {}
    event = event_of(str(tmp_path), [parent], [path])
    assert event["outputs"][0]["outputFacets"][ROW_LINEAGE]["relation"] == "1:1"


@pytest.mark.usefixtures("offspring")
def test_of_one_document_come_several_where_texts_were_generated(tmp_path: Path) -> None:
    root, ids = str(tmp_path), ids_of(30)
    parent = refined_by(root, WRITER, commit_parent(tmp_path, [given(ids)]))[0]
    event = event_of(root, [parent], [refined_by(root, UNFOLDER, parent)[0]])
    rows = event["outputs"][0]["outputFacets"][ROW_LINEAGE]
    jsonschema.Draft202012Validator(SCHEMA).validate(rows)
    assert (rows["relation"], rows["rowsIn"], rows["offspringIn"]) == ("1:N", 30, sum(map(brought, ids)))
    assert rows["rowsIn"] + rows["offspringIn"] == rows["written"]["count"] + sum(rows["rejected"].values())


def test_columns_come_from_where_the_card_says(refined: Told, built: Told) -> None:
    assert refined.columns("dedup_exact")["text"] == {"text": "IDENTITY"}
    extracted = refined.columns("extract")
    assert extracted["url"] == {"url": "IDENTITY"}
    assert extracted["title"] == extracted["id"]
    assert extracted["id"]["payload"] == "TRANSFORMATION"
    assert "offset" not in extracted["id"]
    assert built.columns("tokenize")["tokens"] == {"text": "TRANSFORMATION"}
    packed = built.columns("pack")
    assert set(packed) == {"sequence", "n_tokens", "pieces"}
    assert packed["n_tokens"]["n_tokens"] == packed["pieces"]["tokens"] == "AGGREGATION"
    for version in (refined, built):
        for stage in version.events:
            of = version.output(stage)["facets"]
            assert set(of.get("columnLineage", {}).get("fields", ())) <= {
                name for name, _ in version.manifest(stage).schema
            }
            assert ("columnLineage" in of) is (stage not in ("land", "ingest"))


def test_what_decides_which_rows_stay_is_said_of_the_dataset(refined: Told, built: Told) -> None:
    whole = refined.output("dedup_exact")["facets"]["columnLineage"]["dataset"]
    how = {(each["field"], each["transformations"][0]["type"], each["transformations"][0]["subtype"]) for each in whole}
    assert {("text", "INDIRECT", "FILTER"), ("id", "INDIRECT", "SORT")} <= how
    assert built.output("shuffle")["facets"]["columnLineage"]["dataset"] == []


def test_what_clears_personal_data_masks_what_it_changes(tmp_path: Path) -> None:
    from pipeline_tasks.testing.refining import refined as refine

    parent = commit_parent(tmp_path, [documents(["Write to ada@example.org for more."])])
    path, _ = refine(str(tmp_path), "scrub_pii", parent, {})
    [written] = event_of(str(tmp_path), [parent], [path])["outputs"]
    masks = {
        column: {each["transformations"][0]["masking"] for each in of["inputFields"]}
        for column, of in written["facets"]["columnLineage"]["fields"].items()
    }
    assert masks["text"] == masks["url"] == masks["title"] == {True}
    assert masks["pii_email"] == masks["id"] == {False}
    assert "ada@" not in json.dumps(written)


def test_a_snapshot_is_a_part_of_its_dataset(refined: Told) -> None:
    condition = refined.output("extract")["outputFacets"]["subset"]["outputCondition"]
    assert condition["type"] == "partition"
    [part] = condition["partitions"]
    assert part == {"identifier": path_of(refined.manifests["extract"]), "dimensions": {"snapshot": DAYS[1]}}
    [read] = refined.events["extract"]["inputs"]
    assert read["inputFacets"]["subset"]["inputCondition"]["partitions"][0]["dimensions"] == {"snapshot": DAYS[1]}


def test_a_build_names_the_snapshots_that_it_is_composed_of(built: Told) -> None:
    [read] = built.events["compose"]["inputs"]
    assert read["name"] == f"{built.root}/{RECIPE}/dedup_minhash"
    parts = read["inputFacets"]["subset"]["inputCondition"]["partitions"]
    assert [part["dimensions"]["snapshot"] for part in parts] == list(DAYS[:2])
    assert "inputStatistics" not in read["inputFacets"], "that of one version would be less than was read"
    assert built.columns("compose")["text"] == {"text": "IDENTITY"}
    assert "outputFacets" in built.output("pack")
    assert "subset" not in built.output("pack")["outputFacets"]


def test_a_verdict_is_assertions_on_what_was_read(small_root: SmallRoot) -> None:
    version = version_log.current(small_root.root, RECIPE, DAYS[0])
    [read] = event_of(
        small_root.root, [version.manifests["dedup_minhash"]], [], verdict=version.verdicts["dedup_minhash"]
    )["inputs"]
    gate, *violated = read["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert (gate["assertion"], gate["success"]) == ("gate", True)
    assert gate["params"]["evaluated"] > 0
    assert all(not each["success"] and each["name"] and each["severity"] in ("error", "warn") for each in violated)
    assert (
        read["inputFacets"]["inputStatistics"]["rowCount"]
        == read_manifest(small_root.root, version.manifests["dedup_minhash"]).rows
    )


def facets(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every facet of an event."""
    if isinstance(value, dict):
        if "_schemaURL" in value:
            yield value
        for part in value.values():
            yield from facets(part)
    if isinstance(value, list):
        for part in value:
            yield from facets(part)


def test_our_own_facet_is_as_its_schema_says(either: Told) -> None:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    validator.check_schema(SCHEMA)
    assert SCHEMA["$id"] == ROW_LINEAGE_SCHEMA
    for stage in list(either.events)[1:]:
        rows = either.rows(stage)
        validator.validate(rows)
        for bad in ({**rows, "relation": "2:1"}, {**rows, "rejected": {"a": -1}}, {**rows, "text": "of a document"}):
            assert not validator.is_valid(bad)


def test_the_page_shows_an_event_as_it_is(refined: Told) -> None:
    """Columns are left out there, and what each facet has; fingerprints, digests and sizes are of another release."""
    [shown] = re.findall(r"```json\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    real = json.dumps(refined.events["dedup_exact"]).replace(refined.root, "/data/root")
    of_release = re.compile(r'\b[0-9a-f]{24}\b|\b[0-9a-f]{64}\b|"size": \d+, ')
    anonymous = [json.loads(of_release.sub("", event)) for event in (shown, real)]
    assert is_within(*anonymous)
    assert anonymous[0]["outputs"][0]["outputFacets"][ROW_LINEAGE].keys() >= {*SCHEMA["required"]} - {"_producer"}


def is_within(shown: Any, real: Any) -> bool:
    """Whether all that is shown is there: each value of an object under its key, and each entry of a list."""
    if isinstance(shown, dict):
        return isinstance(real, dict) and all(key in real and is_within(shown[key], real[key]) for key in shown)
    if isinstance(shown, list):
        return isinstance(real, list) and all(any(is_within(each, other) for other in real) for each in shown)
    return bool(shown == real)


def test_every_other_facet_is_one_of_openlineage_s_own(either: Told) -> None:
    """The classes of the client are made from the specification: they take no other field, and have the same schema."""
    pytest.importorskip(
        "openlineage.client", reason="openlineage-python is not installed (requirements-dev.txt has it)"
    )
    known = 0
    for event in either.events.values():
        for each in facets({**event, "schemaURL": ""}):
            if each["_schemaURL"] == ROW_LINEAGE_SCHEMA:
                continue
            made = typed(each)
            assert made._get_schema() == each["_schemaURL"]
            known += 1
    assert known > 3 * len(either.events)


def typed(facet: Mapping[str, Any]) -> Any:
    """Return the facet as an object of the client's class of its name; its parts, too, have no other fields."""
    name = str(facet["_schemaURL"]).rpartition("/")[2]
    generated = Path(str(importlib.import_module("openlineage.client.generated").__file__)).parent
    [module] = [path.stem for path in generated.glob("*.py") if f"\nclass {name}(" in path.read_text(encoding="utf-8")]
    classes = importlib.import_module(f"openlineage.client.generated.{module}")
    fields = {key: value for key, value in facet.items() if not key.startswith("_")}
    parts: Mapping[str, Callable[[], dict[str, Any]]] = {
        "ColumnLineageDatasetFacet": lambda: {
            "fields": {
                column: classes.Fields([input_of(classes, each) for each in of["inputFields"]])
                for column, of in fields["fields"].items()
            },
            "dataset": [input_of(classes, each) for each in fields["dataset"]],
        },
        "SchemaDatasetFacet": lambda: {
            "fields": [classes.SchemaDatasetFacetFields(**each) for each in fields["fields"]]
        },
        "ParentRunFacet": lambda: {"run": classes.Run(**fields["run"]), "job": classes.Job(**fields["job"])},
        "InputSubsetInputDatasetFacet": lambda: {"inputCondition": condition(classes, fields["inputCondition"])},
        "OutputSubsetOutputDatasetFacet": lambda: {"outputCondition": condition(classes, fields["outputCondition"])},
        "DataQualityAssertionsDatasetFacet": lambda: {
            "assertions": [classes.Assertion(**each) for each in fields["assertions"]]
        },
    }
    return getattr(classes, name)(**(parts[name]() if name in parts else fields))


def input_of(classes: Any, field: Mapping[str, Any]) -> Any:
    how = [classes.Transformation(**each) for each in field["transformations"]]
    return classes.InputField(**{**field, "transformations": how})


def condition(classes: Any, given: Mapping[str, Any]) -> Any:
    return classes.PartitionSubsetCondition(
        partitions=[classes.Partition(**each) for each in given["partitions"]], type=given["type"]
    )
