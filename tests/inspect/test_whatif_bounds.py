"""The bounds that `whatif` can change are those of the manifest, and their lines of YAML are what a recipe reads."""

import math
from pathlib import Path

import pytest
import yaml

from pipeline_tasks.binding import bind
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.whatif import whatif
from pipeline_tasks.inspect.whatif.bounds import choices, differing, packs_lines, recipe_lines
from pipeline_tasks.stages.filter_quality import FILTERS, FINEWEB, STAGE
from tests.inspect.test_whatif import published
from tests.refining import refined


def test_every_bound_of_the_recipe_is_listed_with_its_value_and_range(tmp_path: Path) -> None:
    _, version = published(tmp_path, {"gopher_quality": {"min_doc_words": 30}})
    listed = choices(str(tmp_path), version)
    assert list(listed.profiles) == list(FINEWEB)
    bounds = {bound.key: bound for profile in listed.profiles.values() for bound in profile}
    assert set(bounds) == {f"{name}.{limit}" for name in FINEWEB for limit in FILTERS[name].bounds}
    words = bounds["gopher_quality.min_doc_words"]
    assert (words.now, words.range.least, words.range.most) == (30, 0, math.inf)
    assert words.reasons == ("gopher_quality:short_doc",)
    assert bounds["gopher_quality.max_symbol_word_ratio"].reasons == (
        "gopher_quality:too_many_hashes",
        "gopher_quality:too_many_ellipsis",
    )
    assert bounds["fineweb.line_punct_thr"].range.most == 1
    assert (listed.packs, set(listed.languages)) == ("builtin", {"en", "de", "zh"})


def test_languages_with_bounds_of_their_own_are_named(tmp_path: Path) -> None:
    _, version = published(tmp_path)

    def bound(language: str, limit: str) -> tuple[float, tuple[str, ...]]:
        profile = choices(str(tmp_path), version, language).profiles["gopher_quality"]
        [limited] = [bound for bound in profile if bound.limit == limit]
        return limited.now, limited.exceptions

    assert bound("", "max_avg_word_length") == (10, ("zh",))
    assert bound("", "min_stop_words") == (2, ("de", "zh"))
    assert math.isnan(bound("zh", "max_avg_word_length")[0])
    assert bound("de", "max_avg_word_length") == (10, ())
    with pytest.raises(RecipeError, match=r"language: .*'<b>'"):
        choices(str(tmp_path), version, "<b>")


def test_what_is_as_it_is_now_is_no_change(tmp_path: Path) -> None:
    _, version = published(tmp_path)
    same = {
        "gopher_quality.min_doc_words": "50.0",
        "de.c4.max_curly_brackets": " 0 ",
        "packs": "builtin",
        "fineweb.min_lines": "",
    }
    other = {"gopher_quality.min_words": "51", "c4.max_curly_brackets": "few", "zh.gopher_quality.min_stop_words": "2"}
    assert differing(str(tmp_path), version, same | other) == {
        "gopher_quality.min_doc_words": "51",
        "c4.max_curly_brackets": "few",
        "zh.gopher_quality.min_stop_words": "2",
    }


def test_the_lines_give_what_was_predicted(tmp_path: Path) -> None:
    parent, version = published(tmp_path)
    changes = [
        "gopher_quality.min_doc_words=80",
        "gopher_quality.max_doc_words=inf",
        "fineweb.char_duplicates_ratio=1e-05",
    ]
    changes += ["packs=none"]
    forecast = whatif(str(tmp_path), version, changes)
    written = yaml.safe_load("\n".join(recipe_lines(forecast.bounds, "none")))["filter_quality"]
    params = bind(STAGE, written)
    assert params.packs == "none"
    assert params.limits["gopher_quality"] == {"min_doc_words": 80, "max_doc_words": math.inf}
    assert params.limits["fineweb"] == {"char_duplicates_ratio": 1e-05}
    _, then = refined(tmp_path, "filter_quality", parent, written)
    assert then.rows == forecast.whole.then
    assert list(packs_lines(forecast.bounds)) == list(recipe_lines({})) == []


def test_lines_for_single_languages_are_a_file_of_packs(tmp_path: Path) -> None:
    bounds = {"no.gopher_quality.min_doc_words": (50.0, 30.0), "c4.max_curly_brackets": (0.0, 1.0)}
    lines = list(packs_lines(bounds))
    assert yaml.safe_load("\n".join(lines)) == {"no": {"gopher_quality": {"min_doc_words": 30}}}
    (tmp_path / "mine.yaml").write_text("\n".join(lines))
    assert bind(STAGE, {"packs": str(tmp_path / "mine.yaml")}).packs.endswith("mine.yaml")
