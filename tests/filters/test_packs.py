"""Packs: a language is checked by its entry, files that make no sense are refused, and the data has sources."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.binding import bind
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.filters import fails, packs
from pipeline_tasks.filters.packs import ANY, SETS, Pack, load
from pipeline_tasks.stages.filter_quality import FILTERS, FINEWEB, STAGE, Params, filter_texts, resources
from pipeline_tasks.text.signals import stop_words
from pipeline_tasks.text.words.languages import UNSPACED
from tests.documents import documents
from tests.refining import commit_parent, refined

GOPHER = FILTERS["gopher_quality"]
GERMAN = "Der Fluss ist breit, und das Wasser ist kalt; die Otter schwimmen dort mit dem Strom. " * 5


def written(folder: Path, content: str) -> str:
    path = folder / "packs.yaml"
    path.write_text(content, encoding="utf-8")
    return str(path)


def reasons(text: str, language: str | None, **params: object) -> set[str]:
    docs = documents([text], language=pa.array([language], pa.string()))
    judged = bind(STAGE, {"profiles": ["gopher_quality"], **params})
    (out,) = filter_texts(iter(docs.to_batches()), params=judged)
    return set(re.findall(r'"rule":"gopher_quality:(\w+)"', out["evidence"][0].as_py() or ""))


@pytest.mark.parametrize("name", SETS)
def test_our_own_sets_are_sound(name: str) -> None:
    read = load(name, FILTERS)
    assert set(UNSPACED) < set(read)
    assert read["en"].stop_words == ()
    for code in UNSPACED:
        assert read[code].bounds["gopher_quality"]["min_stop_words"] is None


def test_every_entry_of_fineweb2_with_numbers_names_its_source() -> None:
    path = Path(packs.path_of("fineweb2"))
    entries = yaml.safe_load(path.read_text("utf-8"))
    sourced = {code for code, entry in entries.items() if "source" in entry}
    numbered = {
        code
        for code, entry in entries.items()
        if code not in UNSPACED and any(isinstance(bounds, dict) and any(bounds.values()) for bounds in entry.values())
    }
    assert numbered <= sourced
    assert len(sourced - {ANY}) == 30


def test_an_entry_changes_its_own_language_only(tmp_path: Path) -> None:
    path = written(tmp_path, "de: {gopher_quality: {max_avg_word_length: 3.5, min_stop_words: null}}")
    assert reasons(GERMAN, "de", packs=path) == {"above_avg_threshold"}
    assert reasons(GERMAN, "fr", packs=path) == {"enough_stop_words"}
    assert reasons(GERMAN, None, packs=path) == {"enough_stop_words"}
    assert reasons(GERMAN, "de", packs="none") == {"enough_stop_words"}
    assert reasons(GERMAN, "de") == set()


def test_any_is_every_language_without_an_entry(tmp_path: Path) -> None:
    path = written(tmp_path, "any: {gopher_quality: {min_stop_words: null}}\nde: {}\n")
    assert reasons(GERMAN, "fr", packs=path) == reasons(GERMAN, None, packs=path) == set()
    assert reasons(GERMAN, "de", packs=path) == {"enough_stop_words"}


def test_a_bound_of_a_language_wins_over_the_recipe(tmp_path: Path) -> None:
    path = written(tmp_path, "de: {gopher_quality: {min_doc_words: 10}}\nfr: {}\n")
    bounds = {"min_doc_words": 1000, "min_stop_words": 0}
    assert reasons(GERMAN, "de", packs=path, gopher_quality=bounds) == set()
    assert reasons(GERMAN, "fr", packs=path, gopher_quality=bounds) == {"short_doc"}


def test_stop_words_are_those_of_the_language(tmp_path: Path) -> None:
    assert reasons(GERMAN, "de", packs="fineweb2") == set()
    assert reasons(GERMAN, "pl", packs="fineweb2") == {"enough_stop_words"}
    path = written(tmp_path, "de: {stop_words: [der, und]}\nnl: {stop_words: [Der, und]}\n")
    assert reasons(GERMAN, "de", packs=path) == {"enough_stop_words"}  # `Der` is not `der`
    assert reasons(GERMAN, "nl", packs=path) == set()


@pytest.mark.parametrize(
    ("profile", "least", "text", "kept"),
    [
        ("dclm", "min_stop_words", "UND und", True),
        ("dolma", "min_required_words", "UND und", False),
        ("dolma", "min_required_words", "und und", True),
        ("nemo", "min_common_words", "und und", True),
        ("gopher_quality", "min_stop_words", "und und", False),
    ],
)
def test_each_profile_counts_stop_words_its_own_way(
    tmp_path: Path, profile: str, least: str, text: str, *, kept: bool
) -> None:
    path = written(tmp_path, "de: {stop_words: [und, der]}")
    docs = documents([text], language=pa.array(["de"]))
    (out,) = filter_texts(iter(docs.to_batches()), params=Params(profiles=(profile,), packs=path))  # type: ignore[arg-type]
    rule = next(rule.why for rule in FILTERS[profile].rules if rule.limit == least)
    assert (f'"{profile}:{rule}"' not in out["evidence"][0].as_py()) == kept


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("de: {gopher_quality: {min_dok_words: 3}}", ": de: gopher_quality: .*'min_dok_words'.*'min_doc_words'"),
        ("de: {c4: {min_words_per_line: 3}}", ": de: c4: .*'min_words_per_line'"),
        ("de: {gofer_quality: {}}", ": de: .*'gofer_quality'.*'gopher_quality'"),
        ("deu: {}", ": .*'de' .*'deu'"),
        ("xx: {}", ": .*'xx'"),
        ("German: {}", ": .*'German'"),
        ("de: {gopher_quality: {min_doc_words: few}}", ": de: gopher_quality: min_doc_words .*'few'"),
        ("de: {gopher_quality: {min_doc_words: .nan}}", ": de: gopher_quality: min_doc_words .*nan"),
        ("de: {gopher_quality: {min_doc_words: true}}", ": de: gopher_quality: min_doc_words .*True"),
        ("de: {stop_words: [der, no]}", r": de: stop_words .*\['der', False\]"),
        ("de: {stop_words: der}", ": de: stop_words .*'der'"),
        ("de: {gopher_quality: 3}", ": de: gopher_quality .*3"),
        ("- de", r" .*\['de'\]"),
        ("de: {", " "),
        ("", " .*None"),
    ],
)
def test_a_broken_file_is_refused(tmp_path: Path, content: str, named: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(RecipeError, match=re.escape(path) + named):
        resources(Params(packs=path))  # type: ignore[arg-type]


def test_norwegian_needs_no_quotes(tmp_path: Path) -> None:
    assert set(load(written(tmp_path, "no: {}\nnn: {}"), FILTERS)) == {"no", "nn"}


def test_the_content_of_packs_is_identity(tmp_path: Path) -> None:
    parent = commit_parent(tmp_path, [documents([GERMAN], language=pa.array(["de"]))])
    fingerprints = []
    for number, content in enumerate(("de: {}", "fr: {}", "de: {}")):
        path = tmp_path / f"{number}.yaml"
        path.write_text(content)
        fingerprints.append(refined(tmp_path, "filter_quality", parent, {"packs": str(path)})[1].fingerprint)
    named = [refined(tmp_path, "filter_quality", parent, {"packs": name})[1].fingerprint for name in (*SETS, "none")]
    assert fingerprints[0] == fingerprints[2] != fingerprints[1]
    assert len({*fingerprints, *named}) == 2 + len(named)


def test_a_file_starts_from_its_base_and_the_looser_bound_holds(tmp_path: Path) -> None:
    base = "base: fineweb2\n"
    assert load(written(tmp_path, base), FILTERS) == load("fineweb2", FILTERS)
    german = load("fineweb2", FILTERS)["de"].bounds["gopher_quality"]["max_avg_word_length"]
    lax = "loosen: {gopher_quality: {max_avg_word_length: 14, min_doc_words: 60, min_avg_word_length: null}}\n"
    read = load(written(tmp_path, f"{base}{lax}fr: {{gopher_quality: {{max_avg_word_length: 9}}}}\n"), FILTERS)
    limits = {code: read[code].bounds["gopher_quality"] for code in ("de", "fr", "en", "km", ANY)}
    assert [limits[code]["max_avg_word_length"] for code in limits] == [german, 14, 14, None, 14]
    assert {of["min_doc_words"] for of in limits.values()} == {50}  # its own, 50 words, is the looser one
    assert {of["min_avg_word_length"] for of in limits.values()} == {None}
    assert (read["de"].stop_words, read["fr"].stop_words) == (load("fineweb2", FILTERS)["de"].stop_words, ())


def test_bounds_are_loosened_without_a_base(tmp_path: Path) -> None:
    path = written(tmp_path, "loosen: {gopher_quality: {min_doc_words: 3, min_stop_words: 0}}")
    assert reasons("Four words are enough", "fr", packs=path) == set()
    assert reasons("Two words", "fr", packs=path) == {"short_doc"}


@pytest.mark.parametrize("base", ["fineweb3", "packs.yaml", "[builtin]"])
def test_a_base_is_a_set_of_ours(tmp_path: Path, base: str) -> None:
    path = written(tmp_path, f"base: {base}")
    with pytest.raises(RecipeError, match=re.escape(path) + ".*base.*'builtin|fineweb2'"):
        resources(Params(packs=path))  # type: ignore[arg-type]


def test_the_content_of_a_base_is_identity(tmp_path: Path) -> None:
    path = written(tmp_path, "base: fineweb2\n")
    assert resources(Params(packs=path)) == (path, packs.path_of("fineweb2"))  # type: ignore[arg-type]


def test_no_bound_of_the_set_web_is_stricter_than_that_of_fineweb2() -> None:
    ours, theirs = load("web", FILTERS), load("fineweb2", FILTERS)
    assert set(ours) == set(theirs)
    compared = 0
    for card in (FILTERS[name] for name in FINEWEB):
        both = [packs.bounds_table(card, card.limits(), {code: of[code] for code in theirs}) for of in (ours, theirs)]
        for rule, own, other in zip(card.rules, *both, strict=True):
            stricter = own < other if rule.side == "max" else own > other
            assert not (stricter | (np.isnan(other) & ~np.isnan(own))).any(), rule
            compared += 1
    assert compared > 25


def test_missing_packs_are_refused(tmp_path: Path) -> None:
    parent = commit_parent(tmp_path, [documents(["x"], language=pa.array(["de"]))])
    with pytest.raises(RecipeError, match=re.escape(str(tmp_path / "nowhere.yaml"))):
        refined(tmp_path, "filter_quality", parent, {"packs": str(tmp_path / "nowhere.yaml")})
    with pytest.raises(RecipeError, match=r"'buildin'.*'builtin'"):
        Params(packs="buildin")  # type: ignore[arg-type]


@given(
    st.lists(st.tuples(st.floats(0, 2), st.sampled_from(["de", "fr", "en", "xx", None])), max_size=8),
    st.dictionaries(st.sampled_from(["de", "fr", ANY]), st.none() | st.floats(0, 2)),
)
def test_bounds_are_looked_up_row_by_row(rows: list[tuple[float, str | None]], bounds: dict[str, float | None]) -> None:
    rule = GOPHER.rules[6]
    read = {code: Pack({"gopher_quality": {rule.limit: bound}}) for code, bound in bounds.items()}
    languages = pa.array([language for _, language in rows], pa.string())
    table = packs.bounds_table(GOPHER, GOPHER.limits(), read)[6]
    failed = fails(rule, np.array([value for value, _ in rows]), table[packs.bound_columns(languages, read)])
    general = bounds.get(ANY, 0.9)
    wanted = [bounds.get(language or "", general) for _, language in rows]
    assert failed.tolist() == [
        bound is not None and value > bound for (value, _), bound in zip(rows, wanted, strict=True)
    ]


@given(
    st.lists(
        st.tuples(st.text(st.sampled_from("ab cé\n"), max_size=20) | st.text(max_size=20), st.integers(0, 1)),
        max_size=5,
    )
)
def test_stop_words_are_counted_by_the_list_of_each_row(rows: list[tuple[str, int]]) -> None:
    lists = [("a", "é", "bc"), ("b",)]
    texts = pa.array([text for text, _ in rows], pa.large_string())
    which = np.array([at for _, at in rows], np.int64)
    counts = stop_words.count_stop_words(texts, np.zeros(len(rows), np.uint8), which, lists)
    words = [[word for word in text.split() if word in lists[at]] for text, at in rows]
    assert [tuple(count) for count in counts] == [(len(set(stops)), len(stops)) for stops in words]
