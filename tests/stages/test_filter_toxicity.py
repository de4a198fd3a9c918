"""Documents that offend are rejected by rates of words that count, and texts about such words stay."""

import gzip
import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.profiles.columns import profile
from pipeline_tasks.report.comparisons import comparisons
from pipeline_tasks.run.tasks import task
from pipeline_tasks.scorers.classifier import Classifier
from pipeline_tasks.stage import FilePath
from pipeline_tasks.stages import filter_toxicity
from pipeline_tasks.stages.filter_toxicity import (
    BOUNDS,
    COLUMNS,
    HITS,
    KINDS,
    LABELS,
    PLACEHOLDER,
    SHIPPED,
    STAGE,
    Params,
    check_files,
    decide,
    decision_of,
    lexicons_of,
    measure,
)
from pipeline_tasks.store import storage
from pipeline_tasks.store.files import localize
from pipeline_tasks.text.toxicity import lexicons
from tests.documents import documents
from tests.fasttext_file import write_model
from tests.refining import commit_parent, refined, rows
from tests.text.toxicity.examples import Example, harmless, held_out, toxic, unspaced

PROSE = "The heron stands in the shallows and waits for hours before it moves, and the otters come at dusk. " * 8
RUDE = "You idiot, you moron, what a load of bullshit, you scumbag."


def given(texts: Sequence[str | None], languages: Sequence[str | None] | str = "en") -> pa.Table:
    named = [languages] * len(texts) if isinstance(languages, str) else languages
    return documents(texts, language=pa.array(named, pa.string()))


def judged(table: pa.Table, params: Params = Params(), batch_rows: int = 1000) -> list[dict[str, Any]]:  # noqa: B008 -- frozen
    measured = measure(iter(table.to_batches(max_chunksize=batch_rows)), lexicons=lexicons_of(params))
    return [row for batch in decide(measured, decision=decision_of(params)) for row in batch.to_pylist()]


def judged_examples(examples: Sequence[Example]) -> list[dict[str, Any]]:
    return judged(given([example.text for example in examples], [example.language for example in examples]))


def labels_of(row: dict[str, Any]) -> set[str]:
    return {label for label in KINDS if row[f"toxicity_{label}"]}


# Ratchets: floors only go up, and counts of faults only down. The lexicons were tuned on these texts, all but HELD_OUT.
HARMLESS, TOXIC, HELD_OUT = 91, 70, 40
WRONGLY_REJECTED, WRONGLY_KEPT, HELD_OUT_WRONG = 1, 3, 1


def test_texts_with_the_words_that_must_stay_do() -> None:
    """One does not: German names that are words."""
    examples = harmless()
    rejected = [example for example, row in zip(examples, judged_examples(examples), strict=True) if row["reason"]]
    assert len(examples) == HARMLESS
    assert len({example.about for example in examples}) >= 20
    assert len(rejected) <= WRONGLY_REJECTED, rejected


def test_texts_that_offend_go() -> None:
    """Three have two words that count, which is fewer than `fewest`."""
    examples = toxic()
    kept = [example for example, row in zip(examples, judged_examples(examples), strict=True) if not row["reason"]]
    assert len(examples) == TOXIC
    assert len(kept) <= WRONGLY_KEPT, kept


def test_texts_that_nothing_was_tuned_on_are_judged_as_well() -> None:
    examples = held_out()
    rows_ = judged_examples(examples)
    wrong = [each for each, row in zip(examples, rows_, strict=True) if bool(row["reason"]) != bool(each.labels)]
    assert len(examples) == HELD_OUT
    assert len(wrong) <= HELD_OUT_WRONG, wrong


FOUND = {
    "obscene": (25, 27), "threat": (15, 15), "insult": (17, 17), "identity_hate": (15, 15), "adult": (9, 9),
}  # fmt: skip
"""By label: texts in which it is found, and all that have it."""

FOUND_IN_HARMLESS = {"obscene": 1, "insult": 2, "threat": 0, "identity_hate": 0, "adult": 0}
"""By label: harmless texts in which it is found, of 91."""


def test_each_label_is_found_where_it_is() -> None:
    examples = toxic()
    found, expected = Counter[str](), Counter[str]()
    for example, row in zip(examples, judged_examples(examples), strict=True):
        expected.update(example.labels)
        found.update(example.labels & labels_of(row))
    assert {label: (found[label], expected[label]) for label in KINDS} == FOUND


def test_few_labels_are_found_where_none_is() -> None:
    found = Counter(label for row in judged_examples(harmless()) for label in labels_of(row))
    assert {label: found[label] for label in KINDS} == FOUND_IN_HARMLESS


LANGUAGES = {"en": (22, 24), "de": (9, 10), "fr": (9, 9), "es": (9, 9), "it": (5, 5), "pt": (5, 5), "ru": (8, 8)}
"""By language: toxic texts that are rejected, and all of them."""


def test_each_language_is_rejected() -> None:
    examples = toxic()
    counts = {language: [0, 0] for language in LANGUAGES}
    for example, row in zip(examples, judged_examples(examples), strict=True):
        counts[example.language][0] += bool(row["reason"])
        counts[example.language][1] += 1
    assert {language: tuple(count) for language, count in counts.items()} == LANGUAGES


# --- Rules ----------------------------------------------------------------------------------------------------------


def test_the_package_has_the_lexicons_that_were_released() -> None:
    """Other lexicons are another version of the stage."""
    assert STAGE.version == 3
    assert sorted(SHIPPED) == sorted(path.stem for path in Path(lexicons.__file__).parent.glob("lexicons/??.txt"))
    assert Params().languages == ("de", "en", "es", "fr", "it", "ja", "pt", "ru", "zh")


def test_a_rate_decides_and_not_a_word() -> None:
    short, long, one = judged(given([RUDE, RUDE + PROSE * 5, "What an idiot. " + PROSE]))
    assert short["reason"] == "filter_toxicity:obscene"
    assert (long["reason"], long[HITS], one["reason"], one[HITS]) == (None, 4, None, 1)
    assert long["toxicity_insult"] < short["toxicity_insult"]
    assert short["toxicity_toxic"] == short["toxicity_insult"] + short["toxicity_obscene"] == 70.0


def test_every_bound_that_fails_is_evidence_and_no_word_is() -> None:
    (row,) = judged(given([RUDE]))
    failed = json.loads(row["evidence"])
    assert failed == [
        {"bound": 10.0, "rule": "filter_toxicity:obscene", "value": 20.0},
        {"bound": 10.0, "rule": "filter_toxicity:insult", "value": 50.0},
        {"bound": 10.0, "rule": "filter_toxicity:toxic", "value": 70.0},
    ]
    assert "idiot" not in row["evidence"]


@pytest.mark.parametrize("label", LABELS)
def test_each_bound_rejects(label: str) -> None:
    everything = " ".join(example.text for example in toxic() if example.language == "en")
    (row,) = judged(given([everything]), Params(bounds={label: 0.5}))
    assert row["reason"] == f"filter_toxicity:{label}"
    (row,) = judged(given([everything]), Params(bounds=dict.fromkeys(LABELS, float("inf"))))
    assert row["reason"] is None


def test_fewer_words_than_fewest_pass() -> None:
    assert judged(given([RUDE]), Params(fewest=5))[0]["reason"] is None
    assert judged(given(["idiot"]), Params(fewest=0, bounds={"insult": 5.0}))[0]["reason"] == "filter_toxicity:insult"


def test_what_has_no_lexicon_is_unknown_and_kept() -> None:
    korean, unnamed, empty, null = judged(given([RUDE, RUDE, "", None], ["ko", None, "en", "en"]))
    assert [korean[name] for name in (*COLUMNS, HITS, "reason")] == [None] * 9
    assert unnamed[HITS] is None
    assert (empty[HITS], null[HITS], empty["toxicity_toxic"], korean["toxic_spans"]) == (0, 0, 0.0, [])
    (script,) = judged(given([RUDE], ["en-Latn"]))
    assert script["reason"]


def test_redaction_replaces_what_counts_and_says_where() -> None:
    text, slur = "Zoë says: you sh1t, you f u c k e r, idiot!", 'The slur "idiot" is a derogatory term.'
    params = Params(action="redact", bounds={})
    table = given([text, slur, PROSE])
    titles = pa.array(["an idiot, a moron", None, "prose"])
    table = table.set_column(table.schema.get_field_index("title"), "title", titles)
    first, second, third = judged(table, params)
    assert first["text"] == f"Zoë says: you {PLACEHOLDER}, you {PLACEHOLDER}, {PLACEHOLDER}!"
    assert (first["chars"], first["title"]) == (len(first["text"]), f"an {PLACEHOLDER}, a {PLACEHOLDER}")
    for span in first["toxic_spans"]:
        assert first["text"][span["at"] :].startswith(PLACEHOLDER)
    assert [text[span["start"] : span["end"]] for span in first["toxic_spans"]] == ["sh1t", "f u c k e r", "idiot"]
    assert (second["text"], second["toxic_spans"]) == (
        slur, [{"kind": "insult", "start": 10, "end": 15, "used": False, "at": None}],
    )  # fmt: skip
    assert (third["text"], third["title"]) == (PROSE, "prose")
    (again,) = judged(given([first["text"]]), params)
    assert (again["text"], again[HITS]) == (first["text"], 0)


def test_annotation_rejects_and_changes_nothing() -> None:
    (row,) = judged(given([RUDE]), Params(action="annotate"))
    assert (row["reason"], row["text"], row[HITS]) == (None, RUDE, 4)


def test_a_lexicon_of_ones_own_is_used_in_place_of_the_packages(tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text("insult 2: heron\n")
    own = {"en": FilePath(str(tmp_path / "own.txt"))}
    assert judged(given([PROSE, RUDE]), Params(lexicons=own))[0]["toxicity_insult"] > 0
    assert judged(given([PROSE, RUDE]), Params(lexicons=own))[1][HITS] == 0
    assert Params(lexicons=own, shipped_lexicons=False).languages == ("en",)
    (tmp_path / "own.txt").write_text("insult 2: otters\n")  # a changed file is read again
    (row,) = judged(given(["otters"]), Params(lexicons=own))
    assert row[HITS] == 1


@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({"bounds": {"rude": 1.0}}, "rude"),
        ({"most": {"toxic": 0.5}}, "toxic"),
        ({"lexicons": {"xx": "a"}}, "xx"),
        ({"shipped_lexicons": False}, "shipped_lexicons"),
        ({"classifiers": {"toxic": Classifier(FilePath("a.bin"))}}, "toxic"),
        ({"classifiers": {"toxic": Classifier(FilePath("a.bin"), minimum=0.5)}, "most": {"toxic": 0.5}}, "minimum"),
        ({"classifiers": {"toxic": Classifier(FilePath("a.bin"), accepted="so")}, "most": {"toxic": 0.5}}, "accepted"),
    ],
)
def test_params_that_decide_nothing_are_refused(params: dict[str, Any], named: str) -> None:
    with pytest.raises(RecipeError, match=named):
        Params(**params)


# --- Stage ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spark", "ray"])
def test_every_engine_and_batch_stores_the_same(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    examples = [*toxic(), *harmless()]
    table = given([example.text for example in examples], [example.language for example in examples])
    tables, address = [table[:60], table[60:70], table[70:]], request.getfixturevalue(name)
    stored = []
    for root, on, where, batch in (("local", "local", "", 4096), (name, name, address, 7)):
        parent = commit_parent(tmp_path / root, tables)
        _, manifest = refined(tmp_path / root, "filter_toxicity", parent, on=on, address=where, batch_rows=batch)
        stored.append((manifest.fingerprint, manifest.shards, manifest.rejects, manifest.rejected, manifest.metrics))
    assert stored[0] == stored[1]


@pytest.mark.parametrize("texts", [[], [PROSE], [PROSE, None]])
def test_redaction_of_nothing_stores_the_promised_columns(texts: list[str | None], tmp_path: Path) -> None:
    _, manifest = refined(tmp_path, "filter_toxicity", commit_parent(tmp_path, [given(texts)]), {"action": "redact"})
    assert rows(tmp_path, manifest)["text"].to_pylist() == texts


def test_a_model_decides_by_its_own_bound(tmp_path: Path) -> None:
    model = write_model(tmp_path / "toxic.bin", {"heron": "clean", "vermin": "bad"})
    classifier = {"model": str(model), "label": "__label__bad"}
    parent = commit_parent(tmp_path, [given(["heron " * 20, "vermin " * 20])])
    params = {"classifiers": {"toxic": classifier}, "most": {"toxic": 0.6}}
    _, manifest = refined(tmp_path, "filter_toxicity", parent, params)
    assert manifest.rejected == {"filter_toxicity:score_toxic": 1}
    kept, rejected = rows(tmp_path, manifest).to_pylist(), rows(tmp_path, manifest, "rejects").to_pylist()
    assert kept[0]["score_toxicity_toxic"] < 0.6 < rejected[0]["score_toxicity_toxic"]
    assert json.loads(rejected[0]["evidence"])[0]["rule"] == "filter_toxicity:score_toxic"
    assert kept[0]["toxicity_seen"] == 1.0


@pytest.mark.parametrize("action", ["drop", "redact"])
def test_a_run_that_scores_nothing_reads_no_model(
    action: str, any_root: str, bytes_read: Counter[str], cold: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run hashes the model and reads it once; another bound, action or the same again read no byte."""
    model = Path(write_model(tmp_path / "toxic.bin", {"heron": "clean", "vermin": "bad"}))
    storage.put_file(any_root, "models/toxic.bin", model)
    uri, root = f"{any_root}/models/toxic.bin", tmp_path / "root"
    parent = commit_parent(root, [given(["heron " * 20]), given(["vermin " * 20])])
    prepared: list[str] = []
    monkeypatch.setattr(task, "localize", lambda uri, digest: prepared.append(uri) or localize(uri, digest))
    params = {"classifiers": {"toxic": {"model": uri, "label": "__label__bad"}}, "action": action}
    _, first = refined(root, "filter_toxicity", parent, {**params, "most": {"toxic": 0.6}})
    assert prepared == [uri]
    before = bytes_read.copy()
    assert before[uri] >= model.stat().st_size
    _, again = refined(root, "filter_toxicity", parent, {**params, "most": {"toxic": 0.6}})
    _, other = refined(root, "filter_toxicity", parent, {**params, "most": {"toxic": 1.0}})
    assert again == first
    assert (first.rejected, other.rejected) == ({"filter_toxicity:score_toxic": 1}, {})
    assert (prepared, bytes_read) == ([uri], before)


def test_the_figure_has_six_labels_and_adult_content_before_and_after(tmp_path: Path) -> None:
    texts = [example.text for example in toxic() if example.language == "en"]
    parent = commit_parent(tmp_path, [given([*texts, *[PROSE] * len(texts)])])
    for params, after in (({}, 1 / 26), ({"action": "annotate"}, None), ({"action": "redact", "bounds": {}}, 0.0)):
        _, manifest = refined(tmp_path, "filter_toxicity", parent, params)
        [figure] = [each for each in comparisons({"filter_toxicity": manifest}) if each.title == "Toxicity"]
        measures = {each.name: each for each in figure.measures}
        assert list(measures) == [label.replace("_", " ") for label in LABELS]
        assert measures["threat"].before > 0.1
        expected = measures["threat"].before if after is None else measures["threat"].after
        assert measures["threat"].after == expected <= (1.0 if after is None else after + 0.05)
    assert "filter_toxicity" in figure.note


def test_languages_without_blanks_are_judged_by_the_longest_words(tmp_path: Path) -> None:
    examples = unspaced()
    parent = commit_parent(tmp_path, [given([each.text for each in examples], [each.language for each in examples])])
    _, manifest = refined(tmp_path, "filter_toxicity", parent)
    rejected = {row["text"]: row for row in rows(tmp_path, manifest, "rejects").to_pylist()}
    assert set(rejected) == {each.text for each in examples if each.labels}
    for each in examples:
        for label in each.labels:
            assert rejected[each.text][f"toxicity_{label}"] > 0
    assert manifest.rows == sum(not each.labels for each in examples) == 20


@pytest.mark.parametrize(
    ("language", "text", "found"),
    [
        ("ja", "この馬鹿野郎が", ["馬鹿野郎"]),  # and not the shorter word that begins it
        ("ja", "𠮷野家で死ね、死ねば", ["死ね"]),
        ("ja", "死\u200bね", ["死\u200bね"]),
        ("ja", "アルバカーキのファック", ["ファック"]),
        ("ja", "ファックス", []),  # a word of katakana ends where its script does
        ("zh", "接口交互、口交", []),  # unsure, and alone
        ("zh", "你這個賤人abc", ["賤人"]),
        ("zh", "", []),
    ],
)
def test_words_without_blanks(language: str, text: str, found: list[str]) -> None:
    table = given([text], [language])
    [batch] = measure(iter(table.to_batches()), lexicons=lexicons_of(Params()))
    [spans] = batch.column("toxic_spans").to_pylist()
    assert [text[span["start"] : span["end"]] for span in spans if span["used"]] == found


def test_words_of_languages_without_blanks_are_counted_as_everywhere() -> None:
    texts = ["死ね" + "ア" * 1_998, "死ね"]
    [batch] = measure(iter(given(texts, ["ja", "ja"]).to_batches()), lexicons=lexicons_of(Params()))
    assert batch.column("toxicity_threat").to_pylist() == [3.0, 30.0]  # of 1,000 words, and of the fewest


@pytest.mark.parametrize("entry", ["死 ね", "死ね*", "死ね??", "死" * 33, "死-ね"])
def test_an_entry_that_no_text_without_blanks_has_is_refused(entry: str, tmp_path: Path) -> None:
    path = tmp_path / "ja.txt"
    path.write_text(f"threat 3: {entry}\n", "utf-8")
    with pytest.raises(RecipeError, match="line 1"):
        check_files(Params(lexicons={"ja": FilePath(str(path))}))


def test_real_pages_in_chinese_and_japanese_keep_their_words(shared_data: Path) -> None:
    """Of 265 texts of a crawl and of language samples, two spam pages and a comment have words that count."""
    pages = unspaced_pages(shared_data)
    assert len(pages) > 200
    table = given([text for _, text in pages], [language for language, _ in pages])
    hits = [
        row for batch in measure(iter(table.to_batches()), lexicons=lexicons_of(Params())) for row in batch.to_pylist()
    ]
    counted = [row["text"][span["start"] : span["end"]] for row in hits for span in row["toxic_spans"] if span["used"]]
    assert sorted(counted) == ["セフレ", "セフレ", "熟女", "脑残"]


def unspaced_pages(folder: Path) -> list[tuple[str, str]]:
    """Return texts of two crawls and of samples of languages, with `ja` or `zh` by the share of kana and Han."""
    lines = gzip.decompress((folder / "lid" / "lid-sentences.jsonl.gz").read_bytes()).splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    for path in sorted((folder / "wet").glob("dev-*.wet.gz")):
        records = gzip.decompress(path.read_bytes()).decode("utf-8", "replace").split("WARC/1.0\r\n")
        texts += [record.partition("\r\n\r\n")[2].strip() for record in records if "WARC-Target-URI" in record]
    named = []
    for text in dict.fromkeys(texts):
        size = max(len("".join(text.split())), 1)
        kana, han = (len(re.findall(letters, text)) / size for letters in ("[\u3041-\u30ff]", "[\u4e00-\u9fff]"))
        if kana > 0.1 or (han > 0.2 and kana < 0.02):
            named.append(("ja" if kana > 0.1 else "zh", text))
    return named


def test_languages_without_a_lexicon_are_idle() -> None:
    bins = profile(pa.table({"language": ["ko", "en", "ko"]}), ["language"])
    [part] = filter_toxicity.idle(Params(), bins)
    assert "ko (2 documents)" in part.lacks
    assert filter_toxicity.idle(Params(), profile(pa.table({"language": ["en"]}), ["language"])) == ()


def test_bounds_are_of_labels() -> None:
    assert list(BOUNDS) == list(LABELS)
