"""Manifests as healthy and as broken stages leave them, for the tests of gates."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from refinery_models.scorers.check import SUITE

from pipeline_tasks.cards import stage_card
from pipeline_tasks.gate.suites import EXPECTATIONS
from pipeline_tasks.gate.verdicts import Verdict, judge
from pipeline_tasks.manifest import PARTITION, Manifest, schema_pairs
from pipeline_tasks.profiles.columns import profile
from pipeline_tasks.profiles.distributions import DISTRIBUTIONS
from pipeline_tasks.profiles.merging import merge
from pipeline_tasks.profiles.signals import with_quantiles
from pipeline_tasks.profiles.spread import SpreadCounter, joined
from pipeline_tasks.profiles.sums import MOMENTS, SITE_COVERAGES
from pipeline_tasks.recipe import EVERY, PUBLISH, VERDICT
from pipeline_tasks.sealed import digest_of
from pipeline_tasks.stages import NAMES
from tests.refining import commit_manifest, made_up_shard

ROWS = 20_000

HUGE = 10**9
"""Bytes of a shard that is only named: more than a gate reads."""

SUITES = sorted(path.stem for path in EXPECTATIONS.glob("*.json") if path.stem not in (PUBLISH, VERDICT, SUITE))
"""Suites of manifests: what is published, recipes and scorers are judged by others."""


def numbers(**columns: list[int] | list[float] | list[str]) -> dict[str, Any]:
    """Return the profile of columns, as the runner writes it into a manifest."""
    return merge([profile(pa.table(values), [name]) for name, values in ((n, {n: v}) for n, v in columns.items())])


def tokens_of(**languages: tuple[int, int, int]) -> dict[str, Any]:
    """Return the profiles of languages that have so many documents, bytes and tokens."""
    names = ("language", "language_bytes", "language_tokens")
    return {
        name: {"kind": "name", "count": 1, "bins": {code: amounts[at] for code, amounts in languages.items()}}
        for at, name in enumerate(names)
    }


def scores_of(**languages: float) -> dict[str, Any]:
    """Return the profiles of languages that have 600 documents each around a mean score."""
    codes = [code for code in languages for _ in range(600)]
    scores = [languages[code] + 0.001 * (row % 3 - 1) for row, code in enumerate(codes)]
    return profile(pa.table({"language": codes, "score": scores}), MOMENTS)


def with_signals(manifest: Manifest, scale: float = 1.0) -> Manifest:
    """Return `manifest` with signals of documents in two languages, 100 to 10,000 words long times `scale`."""
    words = [scale * words for words in range(100, 10_000)]
    fields = {
        "words": pa.array(words),
        "alpha_word_ratio": pa.array([0.8 + 0.00002 * row for row in range(len(words))]),
    }
    rows = {
        "language": pa.array(["en", "de", "en"] * (len(words) // 3)),
        "signals_gopher_quality": pa.StructArray.from_arrays([*fields.values()], names=[*fields]),
    }
    signals = profile(pa.table(rows), ["signals_gopher_quality"])
    kept_rows = manifest.metrics["kept"] | signals
    return replace(manifest, metrics=with_quantiles({**manifest.metrics, "kept": kept_rows}))


def with_fields(manifest: Manifest, rest: Mapping[str, int], url: int = 9) -> Manifest:
    """Return `manifest` with the types of the fields of nine landed records."""
    fields = {"records": 9, "read": {"text string": 9, "url string": url}, "rest": rest, "version": 1}
    return replace(manifest, metrics={**manifest.metrics, "fields": fields})


def coverages_of(*shares: float) -> dict[str, Any]:
    """Return the profiles of a site of 120 pages of which texts have these shares."""
    columns = {"url": ["https://example.org/"] * 120, "coverage": [*shares] * (120 // len(shares))}
    return profile(pa.table(columns), SITE_COVERAGES)


def origins_of(**counts: int) -> dict[str, Any]:
    """Return the profile of documents of these origins."""
    return {"origin": {"kind": "name", "count": sum(counts.values()), "bins": counts}}


GOOD: dict[str, dict[str, Any]] = {
    "ingest": {},
    "extract": numbers(chars=[800, 1200, 2400] * 40, coverage=[0.9, 0.95, 1.0] * 40, seams=[0, 0, 1] * 40)
    | coverages_of(0.9, 0.95, 1.0),
    "read_images": numbers(images_read=[0.9, 1.0] * 60),
    "check_rights": numbers(robots_txt=["allowed"] * 110 + ["disallowed"] * 10, opt_out=["robots_txt"] * 10),
    "filter_url": {},
    "filter_language": numbers(language=["en", "de"] * 60, language_score=[0.9, 0.95] * 60),
    "filter_quality": numbers(language=["en", "de"] * 60, chars=[800, 1200] * 60),
    "dedup_url": {},
    "dedup_exact": {},
    "cut_templates": numbers(chars=[900] * 120, template_chars=[0, 60] * 60, seams=[0, 0, 1] * 40),
    "dedup_minhash": numbers(unsettled_bands=[0] * 120, shingles=[80] * 120, origins=["source crawl"] * 16_000),
    "dedup_paragraphs": numbers(chars=[900] * 120, cut_chars=[0, 300] * 60, seams=[0, 0, 1] * 40),
    "dedup_substrings": numbers(chars=[900] * 120, substring_chars=[0, 300] * 60, seams=[0, 0, 1] * 40),
    "score_quality": numbers(score=[0.5, 0.6, 0.7, 0.8] * 30) | scores_of(en=0.65, de=0.65),
    "filter_toxicity": numbers(
        toxic_hits=[0, 0, 0, 1] * 30,
        toxicity_identity_hate=[0.0] * 119 + [2.5],
        toxicity_adult=[0.0, 0.0, 0.0, 1.2] * 30,
        language=["en", "de"] * 500,
    ),
    "scrub_pii": numbers(pii_email=[0, 1], pii_phone=[0, 1], pii_ip=[0, 0], language=["en", "de"] * 500)
    | {"missed_canaries": {"kind": "name", "count": 0, "bins": {}}},
    "decontaminate": numbers(chars=[1000] * 120),
    "rephrase": numbers(n_generated=[0, 1, 2] * 40, generated_failed=[0.0] * 80, generated_cut=[0.0] * 80),
    "filter_generated": numbers(language=["en", "de"] * 500) | origins_of(generated=10_000, source=10_000),
    "scrub_generated": numbers(pii_email=[0, 1], pii_phone=[0, 0], pii_ip=[0, 0], language=["en", "de"] * 500)
    | {"missed_canaries": {"kind": "name", "count": 0, "bins": {}}}
    | origins_of(generated=10_000, source=10_000),
    "decontaminate_generated": origins_of(generated=10_000, source=10_000),
    "enrich": numbers(
        chars=[1000] * 120,
        document_type=["article", "documentation", "recipe", "unknown"] * 30,
        reading_level=["standard", "unknown"] * 60,
        license_notice=["unknown"] * 120,
        structure_ratio=[0.1, 0.3] * 60,
    ),
    "embed": numbers(embedding_model=["m"] * 120, embedding_seen=[1.0, 0.9] * 60),
    "dedup_semantic": numbers(
        unsettled_semantic_bands=[0] * 120,
        embedding_numbers=[384] * 120,
        origins=["source crawl"] * 16_000,
        languages=["language en"] * 16_000,
    ),
    "topics": numbers(
        chars=[1000] * 120, topic=["t0001", "t0002", "t0003", "unknown"] * 30, topic_name=["garden soil"] * 120
    ),
    "tokenize": numbers(n_tokens=[200, 300] * 60, n_bytes=[800, 1200] * 60, lost_chars=[0] * 120)
    | tokens_of(en=(100, 80_000, 20_000), th=(100, 60_000, 20_000)),
    "select": numbers(n_tokens=[200, 300] * 60),
    "mix": numbers(n_tokens=[200, 300] * 60),
    "shuffle": numbers(n_tokens=[200, 300] * 60),
    "takedown": numbers(n_tokens=[200, 300] * 60),
    "pack": numbers(n_tokens=[250] * 120),
}
"""A healthy stage's profiles; the rows below go with them."""


def lost_by(stage: str, rows: int) -> dict[str, Any]:
    """Return the profiles of the rows that a healthy stage rejected."""
    if stage not in ("dedup_minhash", "dedup_semantic"):
        return {}
    winners = [f"w{row // 20}" for row in range(min(rows, 80))]
    measured = numbers(similarity=([0.81, 0.95] * rows)[:rows], clusters=winners, origins=["source crawl"] * rows)
    return measured | (numbers(languages=["language en"] * rows) if stage == "dedup_semantic" else {})


PARAMS = {
    "score_quality": {"classifiers": {"edu": {"report": "sha256:0", "accepted": ""}}},
    "pack": {"length": 250},
    "dedup_minhash": {"threshold": 0.8},
    "dedup_semantic": {"threshold": 0.8},
}

KEPT = {
    "filter_language": 0.5,
    "filter_quality": 0.6,
    "dedup_url": 0.9,
    "dedup_exact": 0.8,
    "dedup_minhash": 0.8,
    "dedup_semantic": 0.9,
    "dedup_paragraphs": 0.98,
    "dedup_substrings": 0.98,
    "score_quality": 0.5,
}


def healthy(stage: str, rows_in: int = ROWS) -> Manifest:
    """Return a manifest of `stage` as a healthy run leaves it; its shards are named, not stored."""
    card = stage_card(stage)
    kept = round(rows_in * KEPT.get(stage, 1.0 if stage not in ("ingest", "extract") else 0.95))
    rejected = {card.reasons[0]: rows_in - kept} if rows_in > kept else {}
    manifest = Manifest(
        stage=stage,
        version=card.version,
        fingerprint="",
        params=PARAMS.get(stage, {}),
        parents=(),
        covers=(),
        schema=schema_pairs(card.writes),
        shards=(made_up_shard("data", kept if stage != "pack" else 120, HUGE),),
        history={},
        rejects=(made_up_shard("rejects", rows_in - kept, 1000),),
        quarantine=(),
        rows_in=rows_in,
        bytes_in=0,
        rejected=rejected,
        quarantined={},
        metrics={"kept": GOOD[stage], "rejects": lost_by(stage, rows_in - kept)},
    )
    return with_signals(manifest) if stage == "filter_quality" else manifest


def kept(manifest: Manifest, share: float, why: str = "") -> Manifest:
    """Return `manifest` with another share of its rows kept, the rest rejected for one reason."""
    rows_kept = round(manifest.rows_in * share)
    lost = manifest.rows_in - rows_kept
    reason = why or next(iter(stage_card(manifest.stage).reasons), f"{manifest.stage}:none")
    return replace(
        manifest,
        shards=(made_up_shard("data", rows_kept, HUGE),),
        rejects=(made_up_shard("rejects", lost, 1000),),
        rejected={reason: lost} if lost else {},
    )


def profiled(manifest: Manifest, **columns: list[int] | list[float] | list[str]) -> Manifest:
    """Return `manifest` with other profiles of some columns."""
    return replace(manifest, metrics={**manifest.metrics, "kept": {**manifest.metrics["kept"], **numbers(**columns)}})


def scored(manifest: Manifest, languages: Mapping[str, float]) -> Manifest:
    """Return `manifest` with other mean scores of its languages."""
    return replace(manifest, metrics={**manifest.metrics, "kept": manifest.metrics["kept"] | scores_of(**languages)})


Bad = Iterator[tuple[Manifest, Manifest | None]]


def bad(suite: str) -> Bad:
    """Yield bad manifests, some with the previous one, that together break every expectation of a suite."""
    good = healthy("filter_url" if suite == EVERY else suite)
    yield from PLANTED[suite](good)


def bad_every(good: Manifest) -> Bad:
    yield replace(good, rows_in=good.rows_in + 1), None
    yield replace(good, rejected={"filter_url:url": 5}, rows_in=good.rows_in + 5), None
    yield replace(good, schema=(("id", "int64"),), version=good.version - 1), None
    yield (
        replace(good, quarantined={"error:cut": 4000}, rows_in=24_000, quarantine=(made_up_shard("q", 4000, 9),)),
        None,
    )
    lost = {PARTITION: 4000}
    yield replace(good, quarantined=lost, rows_in=24_000, quarantine=(made_up_shard("q", 4000, 9),)), None
    yield kept(good, 0.0), None
    yield kept(good, 0.5), good
    for column in DISTRIBUTIONS:
        yield losing_a_kind(good, column)


KINDS: dict[str, tuple[Any, Any]] = {"chars": (100, 5_000), "language": ("en", "de"), "source": ("crawl", "feed")}
"""Two values of each column whose distribution is compared."""


def losing_a_kind(good: Manifest, column: str) -> tuple[Manifest, Manifest]:
    """Return manifests of a stage that keeps a tenth of one half of its rows, and of one before that kept all."""
    stays, goes = KINDS[column]
    before = profiled(good, **{column: [stays, goes] * 8_000})
    now = profiled(good, **{column: [stays] * 8_000 + [goes] * 800})
    lost = now.metrics["rejects"] | numbers(**{column: [goes] * 7_200})
    return replace(now, metrics={**now.metrics, "rejects": lost}), before


def bad_ingest(good: Manifest) -> Bad:
    yield kept(good, 0.0), None
    yield kept(good, 0.4, "ingest:too_large"), None
    yield healthy("ingest", 2_000), healthy("ingest", 20_000)
    yield healthy("ingest", 10_600), healthy("ingest", 10_600 * 25)
    yield with_fields(good, {"score string": 9}), with_fields(good, {"score integer": 9})
    yield with_fields(good, {"score string": 1, "score integer": 999}), with_fields(good, {"score integer": 9})
    yield with_fields(good, {"score integer": 9}, 0), with_fields(good, {"score integer": 9})


def bad_extract(good: Manifest) -> Bad:
    yield kept(good, 0.0), None
    yield kept(good, 0.2, "extract:timeout"), None
    yield profiled(good, chars=[20] * 120), good
    yield profiled(good, chars=[800] * 120, truncated=["length"] * 2_000), None
    yield profiled(good, coverage=[0.5] * 2_000), None
    yield profiled(good, seams=[2] * 2_000), None
    fallen = {**good.metrics["kept"], **coverages_of(0.7, 0.8, 0.9)}
    yield replace(good, metrics={**good.metrics, "kept": fallen}), good


def bad_url(good: Manifest) -> Bad:
    yield kept(good, 0.4, "filter_url:bad_url"), None


def bad_rights(good: Manifest) -> Bad:
    yield kept(good, 0.4, "check_rights:robots_txt"), None
    yield kept(good, 0.7, "check_rights:noai"), None
    yield kept(good, 0.02, "check_rights:robots_record"), None
    yield profiled(good, robots_txt=["unreachable"] * 8_000), None


def bad_language(good: Manifest) -> Bad:
    yield kept(good, 0.0), None
    yield profiled(kept(good, 0.02), language_score=[0.4] * 100), None
    yield profiled(kept(good, 0.9), language=["fr"] * 20_000), profiled(good, language=["en"] * 20_000)


def bad_quality(good: Manifest) -> Bad:
    yield kept(good, 0.0), None
    yield kept(good, 0.02), None
    yield kept(good, 1.0), None
    lost = numbers(language=["zh"] * 500)
    yield (
        replace(profiled(good, language=["zh"] * 5), metrics={"kept": numbers(language=["zh"]), "rejects": lost}),
        None,
    )
    yield healthy("filter_quality", 1_000_000), None


def wiped(manifest: Manifest) -> Manifest:
    """Return `manifest` after one source and one site lost 99 % to their own snapshot, all of it to one document."""
    origins = ["source feed", "site example.org"]
    lost = numbers(origins=[*origins, *(f"own {name}" for name in origins)] * 1980, clusters=["w"] * 1980)
    profiles = manifest.metrics["kept"] | numbers(origins=origins * 20)
    return replace(manifest, metrics={"kept": profiles, "rejects": manifest.metrics["rejects"] | lost})


def merged_into_one(manifest: Manifest) -> Manifest:
    """Return `manifest` after nine rows in ten lost to one document."""
    lost = numbers(clusters=["w"] * (manifest.rows_in * 9 // 10))
    return replace(kept(manifest, 0.1), metrics={**manifest.metrics, "rejects": manifest.metrics["rejects"] | lost})


def bad_copies(good: Manifest) -> Bad:
    yield kept(good, 0.01), None
    yield merged_into_one(good), None
    yield wiped(good), None


def bad_templates(good: Manifest) -> Bad:
    yield kept(good, 0.9), None
    yield profiled(good, chars=[900] * 120, template_chars=[300, 600] * 60), None
    yield profiled(good, seams=[2] * 2_000), None


def bad_paragraphs(good: Manifest) -> Bad:
    yield kept(good, 0.3), None
    yield profiled(good, seams=[2] * 2_000), None
    yield wiped(good), None


def bad_substrings(good: Manifest) -> Bad:
    yield from bad_paragraphs(good)
    yield profiled(good, substring_chars=[700, 1000] * 60), None


def bad_near_copies(good: Manifest) -> Bad:
    yield merged_into_one(good), None
    yield profiled(kept(good, 0.01), unsettled_bands=[3] * 10), None
    yield wiped(good), None
    yield replace(good, params={"threshold": 0.85}), None
    yield profiled(good, shingles=[0, 80] * 60), None


def bad_images(good: Manifest) -> Bad:
    yield profiled(good, images_read=[0.0] * 4000), None


def bad_meaning(good: Manifest) -> Bad:
    yield merged_into_one(good), None
    yield profiled(kept(good, 0.01), unsettled_semantic_bands=[3] * 10), None
    yield wiped(good), None
    yield replace(good, params={"threshold": 0.85}), None
    lost = numbers(languages=["language de", "own language de"] * 1980)
    profiles = good.metrics["kept"] | numbers(languages=["language de"] * 20)
    yield replace(good, metrics={"kept": profiles, "rejects": good.metrics["rejects"] | lost}), None


def bad_vectors(good: Manifest) -> Bad:
    yield profiled(good, embedding_seen=[0.01] * 4000), None
    yield kept(good, 0.5, "error:embed"), None


def bad_topics(good: Manifest) -> Bad:
    yield profiled(good, topic=["unknown"] * 1990 + ["t0001"] * 10), None
    yield profiled(good, topic=["t0001"] * 20_000), profiled(good, topic=["t0002", "t0003"] * 10_000)


def bad_score(good: Manifest) -> Bad:
    yield kept(good, 0.0), None
    yield kept(good, 0.01), None
    yield kept(good, 0.6, "score_quality:low_component"), None
    yield profiled(kept(good, 0.6), score=[0.9] * 12_000), profiled(kept(good, 0.6), score=[0.6] * 12_000)
    yield replace(good, params={"classifiers": {"edu": {"report": "", "accepted": ""}}}), None
    yield replace(good, params={"classifiers": {"edu": {"report": "sha256:0", "accepted": "for a trial"}}}), None


def bad_toxicity(good: Manifest) -> Bad:
    rude = profiled(kept(good, 0.4), toxic_hits=[9] * 9, toxicity_identity_hate=[2.0] * 9, toxicity_adult=[4.0] * 9)
    yield rude, None
    yield losing_german(good), None
    yield losing_a_kind(good, "language")


def losing_german(good: Manifest) -> Manifest:
    """Return a manifest as a stage leaves it that rejected three quarters of the documents in one of two languages."""
    lost = numbers(language=["de"] * 1500)
    return replace(good, metrics={**good.metrics, "rejects": good.metrics["rejects"] | lost})


def bad_pii(good: Manifest) -> Bad:
    yield losing_german(good), None
    yield profiled(kept(good, 0.5), pii_email=[50] * 9, pii_phone=[50] * 9, pii_ip=[50] * 9), None
    yield profiled(good, language=["fr"] * 1000), good
    yield profiled(good, missed_canaries=["card,iban"] * 4), None
    yield losing_a_kind(good, "language")


def bad_benchmarks(good: Manifest) -> Bad:
    yield kept(good, 0.5), None
    yield losing_a_kind(good, "language")


def bad_texts(good: Manifest) -> Bad:
    yield profiled(good, generated_failed=[0.5] * 1000), None
    yield profiled(good, generated_cut=[0.0, 1.0, 1.0] * 400), None
    yield profiled(good, n_generated=[0] * 4000), None


def losing_generated(good: Manifest, rows: int, why: str, origin: str = "generated") -> Manifest:
    """Return a manifest as a stage leaves it that rejected so many more documents of an origin."""
    return replace(good, metrics={**good.metrics, "rejects": origins_of(**{f"{origin} {why}": rows})})


def bad_generated(good: Manifest) -> Bad:
    card = stage_card("filter_generated")
    for reason in (reason for reason in card.reasons if reason not in card.replaces):
        yield losing_generated(good, 8_000, reason), None
    yield losing_generated(good, 12_000, "filter_generated:names"), None
    yield kept(good, 0.01), None
    yield losing_german(good), None


def bad_generated_pii(good: Manifest) -> Bad:
    yield losing_generated(good, 1_000, "scrub_generated:pii"), None
    yield kept(good, 0.5), None
    yield losing_german(good), None
    yield profiled(good, missed_canaries=["card,iban"] * 4), None
    yield profiled(good, pii_email=[50] * 9, pii_phone=[50] * 9, pii_ip=[50] * 9), None


def bad_generated_benchmarks(good: Manifest) -> Bad:
    yield losing_generated(good, 1_000, "decontaminate_generated:contaminated"), None
    yield kept(good, 0.5), None


def bad_types(good: Manifest) -> Bad:
    yield profiled(good, document_type=["unknown"] * 1900 + ["article"] * 100), None
    yield profiled(good, document_type=["code"] * 1500 + ["article"] * 500, structure_ratio=[0.95] * 2000), None


def bad_tokens(good: Manifest) -> Bad:
    yield profiled(kept(good, 0.99), n_tokens=[1] * 120), good
    yield profiled(good, lost_chars=[0] * 2700 + [3] * 300), None
    fallen = tokens_of(en=(100, 80_000, 20_000), th=(100, 60_000, 59_000))
    yield replace(good, metrics={**good.metrics, "kept": {**good.metrics["kept"], **fallen}}), good


def bad_selection(good: Manifest) -> Bad:
    yield kept(good, 0.0, "select:where"), None
    yield kept(good, 0.1, "select:superseded"), None


def bad_mixture(good: Manifest) -> Bad:
    yield kept(good, 0.0, "mix:unlisted"), None
    yield profiled(good, n_tokens=[1] * 120), good


def spread_over(manifest: Manifest, order: Iterable[int], rows: int = 4000, shards: int = 4) -> Manifest:
    """Return `manifest` as if it had shuffled documents of two halves, which differ in all columns, to `order`.

    Documents below `rows` / 2 are of one snapshot, source, language, length and quality, the others of another one.
    """
    old = np.array_split(np.fromiter(order, np.int64) < rows // 2, shards)
    counts = []
    for halves in old:
        names = {name: pa.array(np.where(halves, "a", "b"), pa.string()) for name in ("snapshot", "source", "language")}
        numbers = {"n_tokens": np.where(halves, 100, 900), "score": np.where(halves, 0.55, 0.95)}
        counter = SpreadCounter(stage_card("shuffle").spread)
        counter.add(pa.record_batch({**names, **numbers}))
        counts.append(counter.counts())
    return replace(manifest, metrics={**manifest.metrics, "spread": joined(counts)})


def bad_shuffle(good: Manifest) -> Bad:
    yield profiled(kept(good, 0.5), n_tokens=[200] * 60), None
    yield spread_over(good, range(4000)), None  # one half in the first two shards
    yield spread_over(good, (row for shard in range(4) for row in range(shard, 4000, 4))), None  # sorted shards


def bad_takedown(good: Manifest) -> Bad:
    yield kept(good, 0.0, "takedown:taken_down"), None
    yield kept(good, 0.03), None
    yield profiled(good, n_tokens=[1] * 120), good
    yield losing_a_kind(good, "language")


def bad_pack(good: Manifest) -> Bad:
    yield profiled(good, n_tokens=[125] * 120), None


PLANTED = {
    EVERY: bad_every,
    "ingest": bad_ingest,
    "extract": bad_extract,
    "check_rights": bad_rights,
    "filter_url": bad_url,
    "filter_language": bad_language,
    "filter_quality": bad_quality,
    "dedup_url": bad_copies,
    "dedup_exact": bad_copies,
    "dedup_minhash": bad_near_copies,
    "cut_templates": bad_templates,
    "dedup_paragraphs": bad_paragraphs,
    "dedup_substrings": bad_substrings,
    "score_quality": bad_score,
    "filter_toxicity": bad_toxicity,
    "scrub_pii": bad_pii,
    "decontaminate": bad_benchmarks,
    "rephrase": bad_texts,
    "filter_generated": bad_generated,
    "scrub_generated": bad_generated_pii,
    "decontaminate_generated": bad_generated_benchmarks,
    "enrich": bad_types,
    "read_images": bad_images,
    "embed": bad_vectors,
    "dedup_semantic": bad_meaning,
    "topics": bad_topics,
    "tokenize": bad_tokens,
    "select": bad_selection,
    "mix": bad_mixture,
    "shuffle": bad_shuffle,
    "takedown": bad_takedown,
    "pack": bad_pack,
}


def stored(root: Path, manifest: Manifest) -> str:
    """Commit a manifest under the fingerprint of its content; return its path."""
    return commit_manifest(root, replace(manifest, resources={"content": digest_of(manifest)}))


def judged(root: Path, manifest: Manifest, previous: Manifest | None = None, **kwargs: Any) -> Verdict:
    """Store a manifest (its parent too, where tokens are counted) and judge it."""
    if manifest.stage in ("tokenize", "shuffle", "pack"):
        before = NAMES[NAMES.index(manifest.stage) - 1]
        parent = stored(root, healthy(before))
        manifest = replace(manifest, parents=(parent.split("/")[1],), parent_digests=("0" * 64,))
    return judge(str(root), stored(root, manifest), stored(root, previous) if previous else "", **kwargs)
