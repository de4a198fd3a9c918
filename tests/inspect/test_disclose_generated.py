"""What models wrote of a version is disclosed by model, license and prompt, as it is in the documents."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from refinery_rights.disclose import disclose
from refinery_rights.disclose.about import About
from refinery_rights.disclose.croissant import croissant
from refinery_rights.disclose.facts import collected
from refinery_rights.disclose.spdx import spdx

from pipeline_tasks.publish.logs import version_log
from tests import generated_root
from tests.backwards import LICENSE, installed
from tests.erased_root import DATASET, RECIPE, ErasedRoot
from tests.generated_root import rows
from tests.inspect.test_disclose import answer, read_croissant, read_spdx
from tests.inspect.test_disclose import rows as rows_of

pytestmark = pytest.mark.slow

DOCUMENTS = 4


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ErasedRoot]:
    folder = tmp_path_factory.mktemp("disclosed")
    with installed(folder / "site"):
        yield generated_root.make(folder, DOCUMENTS)


@pytest.mark.parametrize("name", [RECIPE, DATASET])
def test_the_summary_counts_generated_documents_by_model(name: str, made: ErasedRoot, tmp_path: Path) -> None:
    version = version_log.current(made.root, name)
    disclose(made.root, version, About(), tmp_path / "out")
    page = json.loads((tmp_path / "out" / "summary.json").read_text())
    generated = [row for row in rows(made, "filter_generated") if row["parent"]]
    models = {row["generation"]["model"] for row in generated}
    [row] = rows_of(page, "synthetic", "generated")
    assert {row["model"]} == models
    assert (row["license"], row["prompt"], row["documents"]) == (LICENSE, "plain", DOCUMENTS)
    assert row["bytes of text"] == sum(len(each["text"].encode()) for each in generated)
    assert row.get("tokens", 0) == (DOCUMENTS * (generated_root.WORDS + 1) if name == DATASET else 0)
    assert answer(page, "synthetic", "Used")["value"] is True
    assert answer(page, "general", "Documents")["value"] == 2 * DOCUMENTS
    sheet = (tmp_path / "out" / "datasheet.md").read_text()
    assert f"{DOCUMENTS} of the documents" in sheet
    assert models.pop().partition("@")[2] in sheet


@pytest.mark.parametrize("name", [RECIPE, DATASET])
def test_croissant_and_spdx_name_the_models(name: str, made: ErasedRoot) -> None:
    with collected(made.root, version_log.current(made.root, name), About()) as facts:
        described, bill = croissant(facts), spdx(facts)
    assert read_croissant(described).metadata.ctx.issues.errors == set()
    [by] = described["prov:wasGeneratedBy"]["prov:qualifiedAssociation"]
    assert by["prov:agent"]["prov:label"].startswith("backwards@")
    assert by["prov:agent"]["license"] == LICENSE
    assert f"wrote {DOCUMENTS} documents" in by["prov:hadRole"]["prov:label"]
    objects = read_spdx(bill)
    [model] = objects.foreach_type("ai_AIPackage")
    assert model.name == "backwards"
    [relation] = [each for each in bill["@graph"] if each.get("relationshipType") == "generates"]
    assert relation["from"] == model._id
    assert not {each for each in objects.missing_ids if not each.startswith("https://spdx.org/rdf/3.0.1/terms/")}
