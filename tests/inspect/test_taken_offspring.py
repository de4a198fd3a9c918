"""Between a takedown of a source and its erasure no reader shows what was generated of it."""

from collections.abc import Iterator

import pyarrow as pa
import pytest
from refinery_ablate.mixture.documents import documents_of
from refinery_exports.tables.table_files import tables_of
from refinery_rights.taking_down import take_down

from pipeline_tasks.engines.each import HERE
from pipeline_tasks.inspect.views.named import KEPT, VersionViews
from pipeline_tasks.inspect.views.rows import Hidden
from pipeline_tasks.inspect.why.records import Reading, records_of, snapshots_of
from pipeline_tasks.inspect.why.sought import sought
from pipeline_tasks.inspect.why.standing import taken_down as takedowns_of
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.takedowns import taken_down_of
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.store.taken_down import taken_down
from tests import generated_root
from tests.backwards import installed
from tests.erased_root import DATASET, RECIPE, ErasedRoot
from tests.generated_root import DAY, offspring, rows, url_of

pytestmark = pytest.mark.slow

DOCUMENTS = 4


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ErasedRoot]:
    """A root of which one source is taken down by its id, and nothing is erased."""
    folder = tmp_path_factory.mktemp("taken")
    with installed(folder / "site"):
        made = generated_root.make(folder, DOCUMENTS)
        take_down(made.root, [("doc", by_name(made)[url_of(1)])], "a letter")
        yield made


def by_name(made: ErasedRoot) -> dict[str, str]:
    """Return the ids of documents by the names of their texts."""
    names = {text: name for name, text in made.texts.items()}
    return {names[row["text"]]: row["id"] for row in rows(made, "filter_generated", "id", "text")}


def left(made: ErasedRoot) -> set[str]:
    """Return the ids of all documents that nobody took down."""
    return {id_ for name, id_ in by_name(made).items() if not name.startswith(url_of(1))}


def test_views_and_tables_do_not_have_it(made: ErasedRoot) -> None:
    version = version_log.current(made.root, RECIPE, DAY)
    view = VersionViews(made.root, version, hidden := Hidden(taken_down(made.root))).of(KEPT)
    shown = pa.Table.from_batches([*view.batches(["id"])])
    assert {*shown["id"].to_pylist()} == left(made)
    assert hidden.rows == 2
    assert tables_of(made.root, version, HERE).hidden >= 2


def test_a_dataset_with_it_is_not_exported_nor_mixed_again(made: ErasedRoot) -> None:
    version = version_log.current(made.root, DATASET)
    by_stage = {stage: read_manifest(made.root, named) for stage, named in version.manifests.items()}
    assert by_name(made)[url_of(1)] in taken_down_of(made.root, by_stage)
    mixed = documents_of(made.root, version, "origin")
    assert int(mixed.is_taken_down.sum()) == 2
    assert mixed.tokens() == dict.fromkeys(("generated", "source"), (DOCUMENTS - 1) * (generated_root.WORDS + 1))


def test_the_story_of_a_generated_document_says_that_its_source_is_taken_down(made: ErasedRoot) -> None:
    one = by_name(made)[offspring(url_of(1))]
    wanted = sought(one)
    found = list(records_of(made.root, snapshots_of(made.root), wanted, Reading()))
    assert [record.parent for record in found] == [by_name(made)[url_of(1)]]
    assert [each.of for each in takedowns_of(made.root, wanted, found)] == [{"doc": by_name(made)[url_of(1)]}]
