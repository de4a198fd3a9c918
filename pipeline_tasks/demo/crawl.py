"""Plans two successive crawls of one small web, plants what a refinery should find, and writes them as WARC."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from pipeline_tasks.demo import prose
from pipeline_tasks.demo.articles import articles
from pipeline_tasks.demo.benchmark import BENCHMARK
from pipeline_tasks.demo.captures import Capture, Web, fresh, recrawled
from pipeline_tasks.demo.snapshot_files import Place, record_id, write_snapshot
from pipeline_tasks.demo.truth import KEPT, Plant, Truth

FIRST = {
    "article": 1150, "exact": 40, "near": 50, "personal": 40, "contaminated": 8, "language": 12, "boilerplate": 80,
    "spam": 60, "listing": 40, "not_html": 24, "http_error": 40, "redirect": 10, "empty": 4, "bad_charset": 4,
    "nested": 2, "bad_chunks": 2, "bomb": 1, "flipped": 1, "short": 1, "long": 1, "cut": 1,
}  # fmt: skip
"""Plants in the first snapshot; `exact` counts clusters, `near` pairs, `language` pages of each language."""

LATER = FIRST | {
    "article": 450, "exact": 10, "near": 10, "personal": 20, "contaminated": 4, "language": 7, "boilerplate": 40,
    "spam": 30, "listing": 20, "not_html": 12, "http_error": 20, "redirect": 5, "empty": 2, "bad_charset": 2,
    "nested": 1, "bad_chunks": 1, "unchanged": 200, "revisit": 100, "edited": 40, "rewritten": 40, "exact_across": 40,
    "near_across": 40,
}  # fmt: skip
"""Plants in a later snapshot; what it recrawls is taken from the plain articles of the one before."""

DAMAGED = frozenset({"flipped", "short", "long", "cut"})
"""Forms of records whose body does not match their headers."""

_POOR = ("extract:", "filter_", "gopher_", "c4:", "fineweb:", "score_quality:", "dedup_")

EXPECTED: dict[str, tuple[str, ...]] = {
    "article": (KEPT,),
    "rewritten": (KEPT,),
    "personal": (KEPT,),
    "exact": ("dedup_exact:",),
    "exact_across": ("dedup_exact:",),
    "near": ("dedup_minhash:", "dedup_exact:"),
    "near_across": ("dedup_minhash:", "dedup_exact:"),
    "edited": ("dedup_minhash:", "dedup_exact:"),
    "unchanged": ("ingest:",),
    "revisit": ("ingest:",),
    "contaminated": ("decontaminate:",),
    "multilingual": (KEPT, "filter_language:"),  # the recipe decides
    "language": ("filter_language:",),
    "boilerplate": _POOR,
    "spam": _POOR,
    "listing": _POOR,
    "not_html": ("ingest:",),
    "http_error": ("ingest:",),
    "redirect": ("ingest:",),
    "empty": ("ingest:", "extract:", "error:"),
    "bad_charset": (KEPT, "error:", "filter_language:"),  # read aright in spite of its header, or not at all
    "nested": ("",),  # any outcome, as long as the run survives and accounts for it
    "bad_chunks": ("ingest:", "error:"),
    "bomb": ("ingest:", "error:"),
    "flipped": ("ingest:", "error:"),
    "short": ("ingest:", "error:"),
    "long": ("ingest:", "error:"),
    "cut": ("ingest:", "error:"),
}
"""What may become of each kind under a recipe for English text."""


def write_crawl(
    folder: Path,
    snapshots: Sequence[str] = ("2026-11-19", "2026-11-20"),
    files: int = 4,
    seed: int = 20261119,
    scale: float = 1.0,
) -> Truth:
    """Write `folder`/<snapshot>/*.warc.gz with `snapshot.json` written last, `benchmark.jsonl` and `truth.json`.

    The same arguments give the same bytes on the same environment. `scale` multiplies the number of plants
    (at least one of each kind). Raises RecipeError when the prose of the installed packages runs out.
    """
    rng = Random(seed)  # noqa: S311 - chance here makes variety, not secrets
    code = prose.listings()
    web = Web(rng, iter(articles(rng)), prose.foreign(), iter(code * (1 + 400 // len(code))))
    folder.mkdir(parents=True, exist_ok=True)
    plants: list[Plant] = []
    records: dict[str, dict[str, int]] = {}
    before: list[Capture] = []
    for snapshot in snapshots:
        recipe = {kind: max(1, round(count * scale)) for kind, count in (LATER if before else FIRST).items()}
        captures = [*recrawled(web, recipe, before), *fresh(web, recipe)]
        captures.sort(key=_position)
        places, records[snapshot] = write_snapshot(folder / snapshot, snapshot, captures, files)
        plants += _plants(snapshot, captures, places)
        before = _articles_of(snapshot, captures, places)
    lines = [{"id": f"demo-{n}", "question": q, "answer": a} for n, (q, a) in enumerate(BENCHMARK)]
    (folder / "benchmark.jsonl").write_text("".join(json.dumps(line, sort_keys=True) + "\n" for line in lines))
    truth = Truth(seed, records, tuple(plants))
    (folder / "truth.json").write_text(truth.dump())
    return truth


def _position(capture: Capture) -> tuple[bool, bytes]:
    """Return a sort key that mixes all kinds; damage is in the last eighth, `cut` at the very end of the last file."""
    mixed = hashlib.sha256(capture.url.encode()).digest()
    return capture.form == "cut", b"\xe0" + mixed if capture.form in DAMAGED else mixed


def _articles_of(snapshot: str, captures: Sequence[Capture], places: dict[str, Place]) -> list[Capture]:
    """Return the plain articles of a snapshot, which the next snapshot may see again, with their record and date."""
    return [
        Capture(
            page.kind,
            page.url,
            page.body,
            coding=page.coding,
            article=page.article,
            earlier=(record_id(snapshot, page), places[page.url].date),
        )
        for page in captures
        if page.kind == "article"
    ]


def _plants(snapshot: str, captures: Sequence[Capture], places: dict[str, Place]) -> Iterator[Plant]:
    """Yield one plant for each cluster, and one for each capture outside of clusters."""
    clusters: dict[str, list[Capture]] = {}
    for capture in captures:
        clusters.setdefault(capture.cluster or capture.url, []).append(capture)
    for members in clusters.values():
        first = members[0]
        yield Plant(
            kind=first.kind,
            snapshot=snapshot,
            urls=tuple(member.url for member in members),
            records=tuple(record_id(snapshot, member) for member in members),
            expected=EXPECTED[first.kind],
            due=max(1, len(members) - 1),
            places=tuple(places[member.url][:3] for member in members if member.form in DAMAGED),
            counts=first.counts,
            jaccard=first.jaccard,
        )
