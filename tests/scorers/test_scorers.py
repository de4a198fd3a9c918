"""A score is a function of text and model: not of the texts beside it, and of the whole text and not its beginning."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.scorers.classifier import Classifier, card_names
from pipeline_tasks.scorers.scorer import STEPS, Scorer, check, load
from pipeline_tasks.scorers.windows import chosen, spans
from pipeline_tasks.stage import FilePath
from tests.scorers.networks import WORDS, onnx_folder, static_folder

KINDS = ("onnx", "static")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Classifier]:
    """A classifier of each kind that needs no torch, in windows of 30 tokens."""
    root = tmp_path_factory.mktemp("models")
    onnx = Classifier(FilePath(onnx_folder(root / "onnx")), lowest=-10, highest=10, length=32, windows=4)
    return {"onnx": onnx, "static": Classifier(FilePath(static_folder(root / "static")), label="good")}


@pytest.fixture(params=KINDS)
def scorer(request: pytest.FixtureRequest, models: dict[str, Classifier]) -> Scorer:
    """Every kind of scorer."""
    return load(models[request.param])


def scores(scorer: Scorer, *texts: str | None) -> list[float]:
    return scorer.scores(pa.array(texts, pa.large_string())).values.tolist()


TEXTS = st.lists(st.sampled_from([*WORDS, "of", "a\n"]), max_size=200).map(" ".join)


def test_a_text_scores_by_its_words(scorer: Scorer) -> None:
    good, mixed, bad, nothing, null = scores(scorer, "good " * 9, "good bad " * 9, "bad " * 9, "", None)
    assert good > 0.8
    assert bad < 0.2
    assert bad < mixed < good
    assert np.isnan([nothing, null]).all()


@given(texts=st.lists(st.none() | TEXTS, min_size=1, max_size=12), data=st.data())
def test_the_texts_beside_it_do_not_change_a_score(
    models: dict[str, Classifier], texts: list[str | None], data: Any
) -> None:
    for kind in KINDS:
        scorer = load(models[kind])
        alone = [scores(scorer, text)[0] for text in texts]
        order = data.draw(st.permutations(range(len(texts))))
        together = scores(scorer, *(texts[rank] for rank in order))
        np.testing.assert_array_equal(np.array(together), np.array(alone)[order])


def test_scores_of_networks_are_steps(models: dict[str, Classifier]) -> None:
    values = scores(load(models["onnx"]), *("good river " * count + "bad" for count in range(40)))
    assert len(set(values)) > 10
    assert [value * STEPS for value in values] == [round(value * STEPS) for value in values]


def test_a_long_text_is_read_to_its_end(models: dict[str, Classifier]) -> None:
    """Classifiers that are run elsewhere read its first 512 tokens."""
    scorer, long = load(models["onnx"]), "river " * 50_000
    assert scores(scorer, long + "bad " * 400)[0] < scores(scorer, long)[0] < scores(scorer, "good " * 400 + long)[0]
    seen = scorer.scores(pa.array([long, "river " * 60])).seen.tolist()
    assert 0 < seen[0] < 0.01
    assert seen[1] == 1.0


def test_all_windows_are_read_where_that_is_asked(models: dict[str, Classifier]) -> None:
    whole = load(Classifier(models["onnx"].model, lowest=-10, highest=10, length=32, windows=0))
    text = "river " * 3000 + "good " * 30 + "river " * 3000
    found = whole.scores(pa.array([text]))
    assert found.seen.tolist() == [1.0]
    assert found.values[0] > 0.5 == scores(load(models["onnx"]), text)[0]


@pytest.mark.parametrize(("pool", "expected"), [("mean", 0.5), ("max", 1.0), ("min", 0.0)])
def test_windows_are_pooled_by_a_rule(models: dict[str, Classifier], pool: Any, expected: float) -> None:
    classifier = Classifier(models["onnx"].model, lowest=-10, highest=10, length=32, pool=pool)
    assert scores(load(classifier), "good " * 30 + "bad " * 30) == [expected]


@given(st.integers(0, 5000), st.integers(0, 40))
def test_windows_are_spread_from_the_first_to_the_last(count: int, most: int) -> None:
    picked = chosen(count, most)
    assert picked == sorted(set(picked))
    assert len(picked) == (min(count, most) if most else count)
    assert picked[:1] == ([0] if count else [])
    assert most < 2 or picked[-1:] == ([count - 1] if count else [])


@given(st.text(st.sampled_from("ab ß\n"), max_size=3000), st.integers(1, 20), st.integers(1, 6))
def test_what_is_tokenized_is_bounded_and_reaches_the_end(text: str, length: int, most: int) -> None:
    parts = spans(text, length, most)
    assert sum(span.stop - span.start for span in parts) <= max(8 * length * most, 0) or len(parts) == 1
    assert len(parts) in (1, most)
    assert parts[0].start == 0
    assert most == 1 or parts[-1].stop == len(text)


def test_dynamic_quantization_is_refused_by_name(tmp_path: Path) -> None:
    """Its scales follow from the batch: the same text had another score beside other texts."""
    folder = onnx_folder(tmp_path / "int8", dynamic=True)
    with pytest.raises(RecipeError, match="DynamicQuantizeLinear"):
        check(Classifier(FilePath(folder)))


def test_a_model_that_cannot_be_used_is_named(models: dict[str, Classifier], tmp_path: Path) -> None:
    model = models["static"].model
    with pytest.raises(RecipeError, match=f"{model} has no label 'god'.*'good'"):
        check(Classifier(model, label="god"))
    with pytest.raises(RecipeError, match=str(tmp_path)):
        check(Classifier(FilePath(str(tmp_path))))
    for name in ("tokenizer.json", "config.json", "head.safetensors"):
        broken = tmp_path / name.partition(".")[0]
        shutil.copytree(model, broken)
        (broken / name).write_text("{")
        with pytest.raises(RecipeError, match=str(broken)):
            check(Classifier(FilePath(str(broken)), label="good"))
    shutil.copytree(models["onnx"].model, tmp_path / "network")
    (tmp_path / "network" / "model.onnx").write_bytes(b"none")
    with pytest.raises(RecipeError, match="network"):
        check(Classifier(FilePath(str(tmp_path / "network"))))


def test_static_embeddings_are_those_of_model2vec(models: dict[str, Classifier], tmp_path: Path) -> None:
    """A quantized vocabulary and weights of tokens, as its folders have them."""
    from safetensors.numpy import load_file, save_file

    from pipeline_tasks.scorers.static import StaticEmbeddings

    shutil.copytree(models["static"].model, tmp_path / "mapped")
    vectors = load_file(Path(models["static"].model) / "model.safetensors")["embeddings"]
    mapping, weights = np.arange(len(vectors)) // 2, np.linspace(0.5, 2, len(vectors))
    save_file(
        {"embeddings": vectors[: len(vectors) // 2], "mapping": mapping, "weights": weights},
        tmp_path / "mapped" / "model.safetensors",
    )
    found = StaticEmbeddings(tmp_path / "mapped").embed(["good bad river", "unheard of"])
    ids = np.array([4, 5, 6])
    mean = (vectors[mapping[ids]] * weights[ids][:, None]).mean(axis=0)
    np.testing.assert_allclose(found[0], mean / np.linalg.norm(mean), rtol=1e-6)
    assert np.isnan(found[1]).all()


@pytest.mark.parametrize("card", card_names())
def test_a_published_classifier_has_a_card(card: str) -> None:
    classifier = Classifier(FilePath("/models/x"), card=card)
    assert 0 < float(classifier.minimum or 0) < 1
    assert Classifier(FilePath("/models/x"), card=card, minimum=0.9).minimum == 0.9
    with pytest.raises(RecipeError, match="hf://"):
        Classifier(card=card)


def test_an_unknown_card_is_refused() -> None:
    with pytest.raises(RecipeError, match="fineweb_edu"):
        Classifier(FilePath("/models/x"), card="fineweb")
