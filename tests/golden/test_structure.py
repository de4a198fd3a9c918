"""Lists, tables, terms, headings and code of annotated pages are kept and laid out; floors only go up (`ratchet.json`)."""

from collections import Counter

import pyarrow as pa
import pytest

from pipeline_tasks.schema import PAGE
from pipeline_tasks.stages.extract import Params, extract_pages
from tests.golden.structure.pages import pages
from tests.golden.structure.scoring import score
from tests.golden.test_ratchet import hold


@pytest.mark.parametrize("output", ["plain", "markdown"])
def test_structure_keeps_its_level(output: str) -> None:
    rows = [
        dict.fromkeys(PAGE.names)
        | {
            "url": f"https://{page.name}.example/",
            "source": "structure",
            "crawled_at": "2026-11-20T00:00:00Z",
            "content_type": "text/html; charset=utf-8",
            "payload": page.html.encode(),
            "metadata": "{}",
        }
        for page in pages()
    ]
    table = pa.Table.from_pylist(rows, PAGE)
    params = Params(output=output, seconds=60)
    extracted = pa.Table.from_batches(extract_pages(iter(table.to_batches()), params=params))
    scored = score(pages(), [text or "" for text in extracted["text"].to_pylist()])
    hold({f"structure.blocks.{output}.{name}": value for name, value in scored._asdict().items()})


def test_pages_are_annotated_by_kind_and_reason() -> None:
    blocks = [block for page in pages() for block in page.blocks]
    assert len(pages()) >= 50
    assert all(block.text in page.html for page in pages() for block in page.blocks if not block.kept)
    kinds = Counter(block.kind for block in blocks)
    assert min(kinds[kind] for kind in ("code", "row", "item", "term", "definition", "heading", "p", "around")) >= 50
    assert all(block.reason for block in blocks)


def test_nothing_and_everything_are_scored_as_they_are() -> None:
    assert score(pages(), [""] * len(pages())).recall == 0
    whole = score(pages(), [page.html for page in pages()])
    ideal = score(pages(), ["\n".join(block.text for block in page.blocks if block.kept) for page in pages()])
    assert (ideal.recall, ideal.precision) == (1, 1)
    assert whole.precision < ideal.precision
    assert 0.5 < ideal.laid_out < 1  # items have no markers there
