"""filter_language tells languages apart and keeps what is wanted and sure."""

import gzip
import json
import re
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.binding import bind
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.recipe import load_recipe
from pipeline_tasks.run.tasks import task
from pipeline_tasks.stage import FilePath
from pipeline_tasks.stages.filter_language import STAGE, Params, check_files, identify, packaged_model, resources
from pipeline_tasks.store.files import localize
from tests.documents import documents
from tests.examples import few_examples
from tests.fasttext_file import write_model
from tests.refining import commit_parent, refined, rows

TEXTS = [
    "The otter swims in the cold river every day and sleeps on the bank.",
    "Der Otter schwimmt jeden Tag im kalten Fluss und schläft am Ufer.",
    "毎日、カワウソは冷たい川で泳ぎ、岸で眠ります。とても元気です。",
    "hm",
    "",
    None,
    "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16",
]
OTHER, UNSURE, MIXED = (f"filter_language:{why}" for why in ("other", "unsure", "mixed"))

WORDS = {"otter": "eng_Latn", "Dachs": "deu_Latn", "видра": "srp_Cyrl", "vidra": "srp_Latn", "水獺": "zho_Hant"}


def identified(texts: list[str | None], **params: object) -> pa.Table:
    batches = identify(iter(documents(texts).to_batches()), params=Params(**params))  # type: ignore[arg-type]
    return pa.Table.from_batches(batches)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model with labels as GlotLID and NLLB have them, to which a text is the words in it."""
    return write_model(tmp_path_factory.mktemp("model") / "labels.bin", WORDS)


def test_languages_and_reasons() -> None:
    out = identified(TEXTS[:6])
    assert out["language"].to_pylist() == ["en", "de", "ja", "und", "und", "und"]
    assert out["reason"].to_pylist() == [None, OTHER, OTHER, UNSURE, UNSURE, UNSURE]
    assert json.loads(out["evidence"][1].as_py()) == [{"bound": "en", "rule": OTHER, "value": "de"}]
    assert json.loads(out["evidence"][3].as_py()) == [{"bound": 0.65, "rule": UNSURE, "value": 0.0}]
    assert out["language_script"].null_count == 6
    assert out["language_mixed"].to_pylist() == [False] * 6


def test_no_wanted_language_keeps_all_that_are_sure() -> None:
    assert identified(TEXTS[:4], keep=())["reason"].to_pylist() == [None, None, None, UNSURE]


def test_the_recipe_web_keeps_texts_in_any_language_of_which_the_model_is_sure() -> None:
    """A Basque, an Armenian and a Catalan text; letters in disorder are sure of none."""
    [step] = [step for step in load_recipe("web").steps if step.stage == "filter_language"]
    texts = [
        "Igaraba egunero igerian aritzen da ibai hotzean, eta ibaiertzean lo egiten du gau osoan zehar.",
        "Ջրասամույրը ամեն օր լողում է սառը գետում և քնում է գետի ափին ամբողջ գիշեր",
        "La llúdriga neda cada dia al riu fred i dorm a la riba durant tota la nit, fins que surt el sol.",
        "xq zv kjw pqf bzx wvk qjd fzt xkp vbq jzw mqx kvz pwj qzx bfk vjq xzw",
    ]
    out = pa.Table.from_batches(identify(iter(documents(texts).to_batches()), params=bind(STAGE, step.params)))
    assert out["language"].to_pylist()[:3] == ["eu", "hy", "ca"]
    assert out["reason"].to_pylist() == [None, None, None, UNSURE]


def test_thresholds_of_single_languages() -> None:
    score = identified(TEXTS[:1])["language_score"][0].as_py()
    assert 0.65 < score < 1
    assert identified(TEXTS[:1], thresholds={"en": 1.0})["reason"].to_pylist() == [UNSURE]
    assert identified(TEXTS[:1], thresholds={"de": 1.0})["reason"].to_pylist() == [None]
    assert identified(TEXTS[3:4], thresholds={"und": 0.0})["reason"].to_pylist() == [None]


def test_newlines_are_spaces_and_only_the_window_is_read() -> None:
    english, german = (text or "" for text in TEXTS[:2])
    assert identified([english.replace(" ", "\n")])["language_score"] == identified([english])["language_score"]
    longer = identified([english + german * 50], window=len(english))
    assert longer["language_score"] == identified([english])["language_score"]


def test_scores_have_six_digits() -> None:
    scores = identified(TEXTS)["language_score"].to_pylist()
    assert len(scores) == len(TEXTS)
    assert scores == [min(max(round(score, 6), 0), 1) for score in scores]


def test_model_file_is_a_resource() -> None:
    assert resources(Params()) == (packaged_model(),)
    assert resources(Params(model=FilePath("/models/own.bin"))) == ("/models/own.bin",)


# --- Models of other makers, by path -------------------------------------------------------------------------------


def test_labels_of_other_models_are_the_same_languages(model: str) -> None:
    texts = ["otter " * 9, "Dachs " * 9, "видра " * 9, "vidra " * 9, "水獺 " * 20, "neither " * 9]
    out = identified([*texts], model=FilePath(model), keep=())
    assert out["language"].to_pylist() == ["en", "de", "sr", "sr", "zh", "und"]
    assert out["language_script"].to_pylist() == ["Latn", "Latn", "Cyrl", "Latn", "Hant", None]


@pytest.mark.parametrize("name", ["sr", "srp", "sr-Cyrl", "srp_Cyrl", "sr_cyrl"])
def test_recipes_may_name_a_language_in_any_form(model: str, name: str) -> None:
    latin = None if name in ("sr", "srp") else OTHER
    out = identified(["видра " * 9, "vidra " * 9], model=FilePath(model), keep=(name,))
    assert out["reason"].to_pylist() == [None, latin]
    assert latin is None or json.loads(out["evidence"][1].as_py())[0]["value"] == "sr-Latn"
    unsure = UNSURE if latin is None else None
    out = identified(["видра " * 9, "vidra " * 9], model=FilePath(model), keep=(), thresholds={name: 1.1})
    assert out["reason"].to_pylist() == [UNSURE, unsure]


def test_a_script_has_its_own_threshold_before_its_language(model: str) -> None:
    out = identified(
        ["видра " * 9, "vidra " * 9], model=FilePath(model), keep=(), thresholds={"sr": 1.1, "sr-Latn": 0.5}
    )
    assert out["reason"].to_pylist() == [UNSURE, None]


def test_packs_hold_for_languages_that_the_recipe_does_not_name(model: str) -> None:
    texts = ["otter " * 9, "Dachs " * 23 + "otter " * 21, "видра " * 9]
    params = {"model": FilePath(model), "keep": (), "packs": "fineweb2"}
    out = identified([*texts], **params)
    assert 0.65 < out["language_score"][1].as_py() < 0.821
    assert out["reason"].to_pylist() == [None, UNSURE, None]
    assert json.loads(out["evidence"][1].as_py())[0]["bound"] == 0.821
    assert identified([*texts], **params, thresholds={"deu": 0.5})["reason"].to_pylist() == [None] * 3
    assert identified([*texts], **params, threshold=1.1)["reason"].to_pylist() == [UNSURE] * 3


def test_a_model_that_does_not_know_says_so(tmp_path: Path) -> None:
    path = FilePath(write_model(tmp_path / "model.bin", {"hm": "und_Latn", "otter": "eng_Latn"}))
    out = identified(["hm " * 20], model=path, keep=())
    assert out["language"].to_pylist() == ["und"]
    assert out["language_script"].to_pylist() == [None]
    assert out["reason"].to_pylist() == [UNSURE]


def test_a_model_that_changed_in_place_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    languages = [
        identified(["mot " * 9], model=FilePath(write_model(path, {"mot": label, "x": "y"})), keep=())["language"]
        for label in ("fr", "es_Latn")
    ]
    assert [language.to_pylist() for language in languages] == [["fr"], ["es"]]


@pytest.mark.parametrize("code", ["english", "", "xx", "sr-Cyrl", "engl_Latn", "en "])
@pytest.mark.parametrize("param", ["keep", "thresholds"])
def test_a_language_that_the_model_does_not_have_is_refused_before_a_run(param: str, code: str) -> None:
    params = Params(keep=("en", code)) if param == "keep" else Params(thresholds={code: 0.5})
    with pytest.raises(RecipeError, match=f"filter_language: {param}: .*'{code}'"):
        check_files(params)


def test_another_bound_reads_no_model(
    model: str, bytes_read: Counter[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared: list[str] = []
    monkeypatch.setattr(task, "localize", lambda uri, digest: prepared.append(uri) or localize(uri, digest))
    root = tmp_path / "root"
    parent = commit_parent(root, [documents(["mot " * 9, "word " * 9])])
    kept = [
        refined(root, "filter_language", parent, {"model": model, "keep": [], "threshold": bound})[1].rows
        for bound in (0.0, 1.0)
    ]
    assert (prepared, kept[0], kept[1] < kept[0]) == ([model], 2, True)
    read = bytes_read.copy()
    refined(root, "filter_language", parent, {"model": model, "keep": [], "threshold": 0.5})
    assert bytes_read == read


def test_a_language_may_be_named_by_any_of_its_codes(model: str) -> None:
    check_files(Params(keep=("en", "eng", "EN", "und", "no", "nob")))
    with pytest.raises(RecipeError, match=r"'dee'.*'de'"):
        check_files(Params(keep=("en", "dee")))
    with pytest.raises(RecipeError, match=r"'eng_Latn'.*'en'"):
        check_files(Params(keep=("eng_Latn",)))
    codes = ("sr", "srp", "srp_Cyrl", "sr-Latn", "sr-Cyrl")
    check_files(Params(keep=codes, model=FilePath(model)))
    with pytest.raises(RecipeError, match="'fr'"):
        check_files(Params(keep=("fr",), model=FilePath(model)))


# --- Windows ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("windows", "size", "language", "score", "mixed"),
    [
        ((0.0,), 300, "en", 1.0, False),
        ((0.25,), 1000, "de", 1.0, False),
        ((0.0, 0.25, 0.5, 0.75), 300, "de", 0.75, True),
        ((0.0, 0.1, 0.5), 100, "en", 0.666667, True),
        ((0.0, 0.9), 100, "en", 0.5, True),
        ((0.0, 0.5), 0, "de", 1.0, False),
        ((0.0, 0.5), 2400, "de", 1.0, False),
    ],
)
def test_windows_begin_at_shares_of_the_text_and_vote(
    model: str, windows: tuple[float, ...], size: int, language: str, score: float, *, mixed: bool
) -> None:
    text = "otter " * 100 + "Dachs " * 300  # 2,400 characters
    out = identified([text], windows=windows, window=size, model=FilePath(model), keep=())
    assert out["language"].to_pylist() == [language]
    assert out["language_score"][0].as_py() == pytest.approx(score, abs=1e-4)
    assert out["language_mixed"].to_pylist() == [mixed]


def test_only_windows_that_are_sure_make_a_text_mixed(model: str) -> None:
    half = "otter " * 100 + "otter Dachs Dachs " * 30 + "Dachs otter otter otter " * 30
    params = {"model": FilePath(model), "keep": (), "windows": (0.0, 0.5, 0.9), "window": 60}
    assert identified(["otter " * 200 + "Dachs " * 200], **params)["language_mixed"].to_pylist() == [True]
    assert identified([half], **params, thresholds={"de": 1.1})["language_mixed"].to_pylist() == [False]
    out = identified(["otter " * 200 + "Dachs " * 200], **params, mixed="reject", thresholds={"de": 0.3, "en": 0.3})
    assert out["reason"].to_pylist() == [MIXED]


def test_windows_count_characters_not_bytes(model: str) -> None:
    text = "水獺 " * 400 + "видра " * 200
    out = identified([text], model=FilePath(model), keep=(), windows=(0.5,), window=1200)
    assert out["language"].to_pylist() == ["sr"]
    assert out["language_score"][0].as_py() > 0.999


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"windows": []}, "windows []"),
        ({"windows": [1.0]}, "windows [1.0]"),
        ({"windows": [-0.1]}, "windows"),
        ({"window": -1}, "window "),
    ],
)
def test_windows_that_are_none_are_refused(wrong: dict[str, object], named: str) -> None:
    with pytest.raises(RecipeError, match=re.escape(f"filter_language: {named}")):
        bind(STAGE, wrong)


# --- Paragraphs ------------------------------------------------------------------------------------------------------

OTTER, DACHS, VIDRA = (f"{word} " * 60 for word in ("otter", "Dachs", "видра"))
CODE = "\n".join(f"  x [{at}] = otter ( {{ {at} }} );" for at in range(40))
HALF = f"{OTTER}\n\n{DACHS}\n\n{OTTER}\n\n{CODE}\n\n{VIDRA}\n{VIDRA}"


def by_paragraph(model: str, texts: list[str], **params: object) -> pa.Table:
    return identified([*texts], model=FilePath(model), unit="paragraph", **params)


def test_the_majority_of_the_letters_decides_and_foreign_paragraphs_are_listed(model: str) -> None:
    [row] = by_paragraph(model, [HALF], keep=()).to_pylist()
    assert (row["language"], row["language_score"], row["reason"]) == ("en", pytest.approx(1, abs=1e-4), None)
    assert row["text"] == HALF
    spans = [(span["language"], HALF[span["start"] : span["end"]]) for span in row["language_spans"]]
    assert spans == [("de-Latn", DACHS), ("sr-Cyrl", f"{VIDRA}\n{VIDRA}")]
    assert row["language_mixed"]
    assert by_paragraph(model, [HALF], keep=(), mixed="reject")["reason"].to_pylist() == [MIXED]


def test_foreign_paragraphs_are_cut_with_their_line_ends_and_nothing_else(model: str) -> None:
    [row] = by_paragraph(model, [HALF], keep=(), foreign="cut").to_pylist()
    assert row["text"] == f"{OTTER}\n\n{OTTER}\n\n{CODE}"
    assert row["chars"] == len(row["text"])
    assert [span["language"] for span in row["language_spans"]] == ["de-Latn", "sr-Cyrl"]
    assert not row["language_mixed"]


def test_quotations_headings_and_rows_of_a_table_are_not_cut(model: str) -> None:
    quotation = f"{OTTER}\n\n> {'Dachs ' * 20}\n\n{OTTER}"
    table = f"{OTTER}\n\n" + "\n".join([f"| {'otter ' * 50} |", f"| {'Dachs ' * 45} |", f"| {'otter ' * 50} |"])
    out = by_paragraph(model, [quotation, table], keep=(), foreign="cut")
    assert out["text"].to_pylist() == [quotation, table]
    shorter = by_paragraph(model, [quotation], keep=(), foreign="cut", min_foreign=50)
    assert shorter["text"].to_pylist() == [f"{OTTER}\n\n{OTTER}"]


def test_a_cut_keeps_the_wanted_half_of_a_text(model: str) -> None:
    text = f"{DACHS}\n\n{OTTER}\n\n{DACHS}"
    kept, cut = (by_paragraph(model, [text], foreign=foreign).to_pylist()[0] for foreign in ("keep", "cut"))
    assert (kept["language"], kept["reason"], kept["text"]) == ("de", OTHER, text)
    assert (cut["language"], cut["reason"], cut["text"]) == ("en", None, OTTER)


def test_what_is_rejected_stays_whole(model: str) -> None:
    texts = [f"{DACHS}\n\n{VIDRA}\n{VIDRA}", f"{OTTER}\n{'otter Dachs ' * 90}\n{DACHS}"]
    out = by_paragraph(model, texts, foreign="cut", threshold=0.9)
    assert out["reason"].to_pylist() == [OTHER, UNSURE]
    assert out["text"].to_pylist() == texts


def test_unsure_paragraphs_lower_the_score_and_do_not_vote(model: str) -> None:
    doubt = "otter " * 22 + "Dachs " * 21
    out = by_paragraph(model, [f"{OTTER}\n{doubt}", doubt, CODE], keep=())
    assert out["language"].to_pylist() == ["en", "en", "en"]
    sure, unsure, code = out["language_score"].to_pylist()
    assert 0.5 < unsure < 0.65 < sure < 1
    assert out["reason"].to_pylist()[:2] == [None, UNSURE]
    assert code > 0, "what is all code is read as it is"


def test_whole_texts_have_no_spans(model: str) -> None:
    assert identified([HALF], model=FilePath(model))["language_spans"].to_pylist() == [None]


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"foreign": "cut"}, "foreign"),
        ({"unit": "paragraph", "window": 0}, "window"),
        ({"unit": "paragraph", "windows": [0.5]}, "window"),
    ],
)
def test_params_that_do_nothing_together_are_refused(wrong: dict[str, object], named: str) -> None:
    with pytest.raises(RecipeError, match=re.escape(f"filter_language: {named}")):
        bind(STAGE, wrong)


# --- Nothing is lost -------------------------------------------------------------------------------------------------


@given(
    st.lists(
        st.none()
        | st.text(max_size=60)
        | st.lists(st.sampled_from([*WORDS, "\n", "\u3000", "\0", "x"]), max_size=40).map(" ".join),
        max_size=8,
    ),
    st.sampled_from([(), ("en",), ("sr-Latn", "de")]),
)
def test_any_texts_are_identified_one_by_one(model: str, texts: list[str | None], keep: tuple[str, ...]) -> None:
    params = {"model": FilePath(model), "windows": (0.0, 0.5), "window": 30, "min_chars": 2, "keep": keep}
    names = ["language", "language_score", "language_script", "language_mixed", "reason", "evidence"]
    whole = [identified([text], **params).select(names).to_pylist()[0] for text in texts]
    assert identified(texts, **params).select(names).to_pylist() == whole if texts else True
    for row in whole:
        assert (row["reason"] is None) == (row["evidence"] is None)


@few_examples
@given(texts=st.lists(st.sampled_from([*WORDS, "x"]).map(lambda word: f"{word} " * 9), min_size=1, max_size=12))
def test_unwanted_languages_are_kept_apart_and_whole(
    model: str, texts: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("root")
    parent = commit_parent(root, [documents(texts)])
    _, manifest = refined(root, "filter_language", parent, {"keep": ["en"], "model": model})
    kept, rejected = rows(root, manifest), rows(root, manifest, "rejects")
    both = [row["text"] for table in (kept, rejected) for row in table.to_pylist()]
    assert Counter(both) == Counter(texts)
    for row in rejected.to_pylist():
        if row["reason"] == OTHER:
            assert WORDS[row["text"].split()[0]][:2] == row["language"][:2] or row["language"] == "zh"
            assert row["language"] != "en"


@pytest.mark.parametrize("unit", ["text", "paragraph"])
def test_accuracy_on_labeled_sentences_does_not_fall(shared_data: Path, unit: str) -> None:
    """79 languages, single sentences: 0.779 when this was written."""
    lines = gzip.decompress((shared_data / "lid" / "lid-sentences.jsonl.gz").read_bytes()).splitlines()
    cases = [case for case in map(json.loads, lines) if case["kind"] == "sentence"]
    out = identified([case["text"] for case in cases], keep=(), min_chars=1, unit=unit)
    right = sum(case["lang"] == language for case, language in zip(cases, out["language"].to_pylist(), strict=True))
    assert right / len(cases) >= 0.775
