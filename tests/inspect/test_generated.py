"""A generated document leads to its source, the stretch that was read, the model, the prompt, and the landed record."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest

from pipeline_tasks.inspect.document import document, document_lines
from pipeline_tasks.inspect.document.generated import Generated
from pipeline_tasks.inspect.document.trace import trace_lines, trace_spot
from pipeline_tasks.inspect.search.find import find
from pipeline_tasks.publish.datasets.published_shards import Spot, open_build
from pipeline_tasks.publish.logs import version_log
from tests import generated_root
from tests.backwards import LICENSE, installed
from tests.erased_root import DATASET, RECIPE, ErasedRoot
from tests.generated_root import DAY, offspring, rows, url_of

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ErasedRoot]:
    folder = tmp_path_factory.mktemp("generated")
    with installed(folder / "site"):
        yield generated_root.make(folder, 4)


def named(made: ErasedRoot) -> dict[str, dict[str, Any]]:
    """Return the rows of documents by the names of their texts."""
    names = {text: name for name, text in made.texts.items()}
    return {names[row["text"]]: row for row in rows(made, "filter_generated") if row["text"] in names}


def test_a_packed_token_leads_to_the_source_and_the_model(made: ErasedRoot) -> None:
    version, documents = version_log.current(made.root, DATASET), named(made)
    source, one = documents[url_of(2)], documents[offspring(url_of(2))]
    [use] = find(made.root, [version], [("doc", str(one["id"]))])
    traced = trace_spot(made.root, open_build(made.root, version), Spot(use.shard, use.sequence, use.start))
    said = one["generation"]
    assert traced.generated == Generated(str(source["id"]), **said)
    assert (traced.generated.start, traced.generated.end) == (0, len(str(source["text"])))
    assert (traced.generated.prompt, traced.generated.model_license) == ("plain", LICENSE)
    assert traced.file == "a.jsonl"
    assert traced.offset == source["offset"]
    assert f"generated  {traced.generated.line}" in [*trace_lines(traced)]
    assert json.loads(json.dumps(asdict(traced)))["generated"]["seed"] == said["seed"]
    [use] = [each for each in find(made.root, [version], [("doc", str(source["id"]))]) if each.id == source["id"]]
    assert (
        trace_spot(made.root, open_build(made.root, version), Spot(use.shard, use.sequence, use.start)).generated
        is None
    )


def test_a_source_is_found_with_what_was_made_of_it(made: ErasedRoot) -> None:
    version, documents = version_log.current(made.root, DATASET), named(made)
    source, one = documents[url_of(1)], documents[offspring(url_of(1))]
    found = {use.id for use in find(made.root, [version], [("doc", str(source["id"]))])}
    assert found == {source["id"], one["id"]}


def test_the_story_of_a_document_says_what_it_was_made_of_and_no_text(made: ErasedRoot) -> None:
    version, documents = version_log.current(made.root, RECIPE, DAY), named(made)
    source, one = documents[url_of(3)], documents[offspring(url_of(3))]
    shown = document(made.root, version, str(one["id"]))
    lines = "\n".join(document_lines(shown, [None] * len(shown.records)))
    assert f"generated from {source['id']}, characters 0 to {len(str(source['text'])):,}, by backwards@" in lines
    shown = document(made.root, version, str(source["id"]))
    lines = "\n".join(document_lines(shown, [None] * len(shown.records)))
    assert "n_generated 1" in lines
    assert made.texts[offspring(url_of(3))][:20] not in lines
