r"""Measures a method of extraction by what it keeps of a page's blocks, and by its time.

    PYTHONPATH=. python benchmarks/blocks.py [--method M] [--every N] [--turns T] [--json]

`wcxb_dev`: word F1 on ../shared/data/wcxb as its README says, mean over the pages that have gold text; `wcxb_empty` is
the mean of the others, whose score is 1 without any word and 0 with one, and `wcxb_all` the mean of both, which other
projects publish. `wcxb_types`: `wcxb_dev` by type of page; `wcxb_with`, `wcxb_without`: shares of snippets that are in
the text, wanted and unwanted. A model that is trained on these pages has seen them: its figures by folds of hosts are
in its report of training.
`gold`: the gold sets, as `tests/golden/test_ratchet.py` scores them.
`renamed`: `wcxb_dev` with every class and id of a page renamed, less `wcxb_dev`.
`time_ratio`: processor time of the stage as it is, against resiliparse alone (decode as UTF-8, parse, main content), on
the pages of WCXB in turns on one pinned core.
The other figures are of pages that are written for it (`block_pages.py`) in ten languages, scored by `block_scores.py`.
`boxes`: share of the runs of three words that are kept of boxed notes between paragraphs, and of descriptions of
functions. `formulas`: similarity by edits to the TeX of 60 pages in six notations, mean over pages. `code`: share of
lines with their indentation. `teds`: similarity of tables by edits of their trees, with `output: markdown`. `terms`:
share of terms that have their description right behind them. `kinds` has each by its markup.
"""

import argparse
import json
import os
import random
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import block_pages
import block_scores
import documents
import pyarrow as pa
import pyarrow.parquet as pq
from extract import bare
from text import drain, seconds

SHARED = documents.SNAPSHOT.parent.parent
SEED = 51
_LETTERS = "bcdfghjklmnpqrstvwxz"


@dataclass(frozen=True, slots=True)
class Scored:
    """A page of WCXB with its text: its type, whether it has gold text, F1, shares of snippets."""

    kind: str
    has_gold: bool
    f1: float
    wanted: list[bool]
    unwanted: list[bool]


def row_of(url: str, page: bytes) -> dict[str, Any]:
    """Return a page as stage `extract` reads it."""
    from pipeline_tasks.schema import PAGE

    known = {"url": url, "record_id": url, "kind": "response", "content_type": "text/html", "payload": page}
    return {name: known.get(name) for name in PAGE.names}


def texts_of(pages: Iterable[bytes], method: str, output: str = "plain") -> list[str]:
    """Return the text of each page by a method, empty where there is none."""
    from pipeline_tasks.stages.extract import Params
    from tests.golden.extraction import extracted

    rows = [row_of(f"https://example.org/{at}", page) for at, page in enumerate(pages)]
    return extracted(rows, Params(method, output="markdown" if output == "markdown" else "plain", seconds=60))


# --- WCXB -------------------------------------------------------------------------------------------------------


def wcxb_scores(pages: list[dict[str, Any]], texts: list[str]) -> list[Scored]:
    """Return the scores of the texts of WCXB's pages."""
    scored = []
    for page, text in zip(pages, texts, strict=True):
        f1, _, _ = block_scores.word_scores(text, page["main_content"])
        lower = text.lower()
        snippets = [[part.lower() in lower for part in page[name] or ()] for name in ("with_", "without")]
        scored.append(Scored(page["page_type"], bool(page["main_content"].strip()), f1, *snippets))
    return scored


def wcxb_figures(scored: list[Scored]) -> dict[str, Any]:
    """Return the means over pages, of all and by type."""
    kinds = defaultdict[str, list[float]](list)
    for page in scored:
        if page.has_gold:
            kinds[page.kind].append(page.f1)
    empty = [page.f1 for page in scored if not page.has_gold]
    return {
        "wcxb_dev": mean(page.f1 for page in scored if page.has_gold),
        "wcxb_all": mean(page.f1 for page in scored),
        "wcxb_empty": {"pages": len(empty), "f1": mean(empty)},
        "wcxb_types": {kind: mean(values) for kind, values in sorted(kinds.items())},
        "wcxb_with": mean(mean(map(float, page.wanted)) for page in scored if page.wanted),
        "wcxb_without": mean(mean(map(float, page.unwanted)) for page in scored if page.unwanted),
    }


def renamed(page: bytes, number: int) -> bytes:
    """Return a page with names of letters that make no word, the same name for the same one."""
    draw, names = random.Random(f"{SEED}:{number}"), dict[bytes, bytes]()  # noqa: S311 -- names, and not secrets

    def name(known: bytes) -> bytes:
        return names.setdefault(known, "".join(draw.choices(_LETTERS, k=8)).encode())

    return block_scores.renamed(page, name)


def time_ratio(pages: list[bytes], method: str, turns: int) -> float:
    """Return the processor time of the stage by that of resiliparse alone; starting the sandbox is not counted."""
    from pipeline_tasks.schema import PAGE
    from pipeline_tasks.stages.extract import Params, extract_pages

    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    pa.set_cpu_count(1)
    table = pa.Table.from_pylist([row_of(f"https://example.org/{at}", page) for at, page in enumerate(pages)], PAGE)

    def stage(rows: pa.Table = table) -> None:
        drain(extract_pages(iter(rows.to_batches(1024)), params=Params(method)))

    def alone() -> None:
        for page in pages:
            bare(page)

    stage(table[:20])
    ratios = [seconds(stage) / seconds(alone) for _ in range(turns)]
    os.sched_setaffinity(0, cores)
    return statistics.median(ratios)


# --- Pages that are written for it ------------------------------------------------------------------------------


def by_kind(
    pages: Iterable[block_pages.Page[block_pages.Wanted]],
    method: str,
    score: Callable[[str, block_pages.Wanted], float],
    output: str = "plain",
) -> dict[str, float]:
    """Return the mean score over what is wanted of the pages of each markup."""
    listed = list(pages)
    scores = defaultdict[str, list[float]](list)
    for page, text in zip(listed, texts_of((page.html.encode() for page in listed), method, output), strict=True):
        scores[page.kind].append(mean(score(text, wanted) for wanted in page.wanted))
    return {kind: mean(values) for kind, values in scores.items()}


def notation_figures(scores: Mapping[str, float]) -> dict[str, float]:
    """Return the scores of notations: each is written by one program or by two, on as many pages."""
    return {name: mean(scores[write.__name__] for write in writers) for name, writers in block_pages.NOTATIONS.items()}


def written(method: str) -> dict[str, Any]:
    """Return the figures of the pages that are written for this benchmark."""
    kinds = {
        "formulas": notation_figures(
            by_kind(
                block_pages.formula_pages(),
                method,
                lambda text, formula: block_scores.formula_similarity(text, *formula),
            )
        ),
        "notes": by_kind(block_pages.note_pages(), method, block_scores.kept_share),
        "descriptions": by_kind(block_pages.description_pages(), method, block_scores.kept_share),
        "code": by_kind(block_pages.code_pages(), method, block_scores.code_share),
        "teds": by_kind(block_pages.table_pages(), method, block_scores.table_similarity, "markdown"),
        "terms": by_kind(block_pages.term_pages(), method, lambda text, pair: block_scores.term_share(text, [pair])),
    }
    means = {name: mean(scores.values()) for name, scores in kinds.items()}
    boxes = {name: means.pop(name) for name in ("notes", "descriptions")}
    return {"boxes": boxes, **means, "kinds": kinds}


def mean(values: Iterable[float]) -> float:
    """Return the mean, 0 of nothing."""
    listed = list(values)
    return statistics.fmean(listed) if listed else 0.0


def rounded(value: Any) -> Any:  # noqa: ANN401 -- what JSON has
    """Return figures with four digits."""
    if isinstance(value, dict):
        return {name: rounded(inner) for name, inner in value.items()}
    return round(value, 4) if isinstance(value, float) else value


def figures(method: str, every: int, turns: int) -> dict[str, Any]:
    """Return all figures of a method; without the shared data those of the written pages."""
    found = written(method)
    data = SHARED / "wcxb" / "dev.parquet"
    if data.exists():
        pages = pq.read_table(data).to_pylist()[::every]
        payloads = [page["html"] for page in pages]
        found |= wcxb_figures(wcxb_scores(pages, texts_of(payloads, method)))
        others = [renamed(page, number) for number, page in enumerate(payloads)]
        again = wcxb_figures(wcxb_scores(pages, texts_of(others, method)))
        found |= {"pages": len(pages), "renamed": again["wcxb_dev"] - found["wcxb_dev"]}
        found["time_ratio"] = time_ratio(payloads, method, turns)
    if (SHARED / "gold").exists():
        from tests.golden.extraction import gold_scores

        found["gold"] = gold_scores(SHARED, method)
    return {"method": method, **rounded(found)}


def main() -> None:
    """Print the measurements; with --json the last line is one JSON object."""
    from pipeline_tasks.stages.extract import METHODS, Params

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", choices=METHODS, default=Params().method)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="read every Nth page of WCXB alone")
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = figures(options.method, options.every, options.turns)
    for name, value in found.items():
        lines = value.items() if isinstance(value, dict) else [("", value)]
        for inner, figure in lines:
            print(f"{name:<14}{inner:<24}{figure}")
    if options.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
