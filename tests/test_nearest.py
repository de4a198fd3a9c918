"""Words that are written nearly right are told of by one mechanism, whoever refuses them."""

from pathlib import Path

import pytest

from pipeline_tasks.nearest import near, nearest

PROJECT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("Body Text", ["title", "Body text", "url"], "Body text"),
        ("body_text", ["title", "body-text"], "body-text"),
        ("LOCAL", ["local", "spark", "ray"], "local"),
        ("--partiton", ["--input", "--partitions"], "--partitions"),
        ("min_dok_words", ["max_words", "min_doc_words"], "min_doc_words"),
    ],
)
def test_a_word_is_told_by_its_likeness_in_any_case_and_however_it_is_joined(
    word: str, known: list[str], meant: str
) -> None:
    assert nearest(word, known) == f" (did you mean {meant!r}?)"
    assert near(word, known) == [meant]


def test_what_is_like_no_word_has_no_hint_and_of_words_alike_the_first_is_told() -> None:
    assert nearest("zzz", ["local", "spark"]) == nearest("text", []) == ""
    assert near("text", ["TEXT", "Text"]) == ["TEXT"]
    assert len(near("zzz", ["local", "spark", "ray"], 2)) == 2


def test_no_other_module_looks_for_words_that_are_near() -> None:
    sources = [path for room in ("pipeline_tasks", "plugins", "dags") for path in PROJECT.glob(f"{room}/**/*.py")]
    assert [path.name for path in sources if "get_close_matches" in path.read_text()] == ["nearest.py"]
