"""C4's bad words and mC4's paragraphs equal a plain reading of their definitions, for any text."""

import gzip
import heapq
import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.filters import c4_badwords, c4_paragraphs
from pipeline_tasks.stage import FilePath
from pipeline_tasks.stages.filter_quality import Params, filter_texts
from tests.documents import documents
from tests.refining import commit_parent, refined

FILES = {path.stem: FilePath(str(path)) for path in Path(__file__).with_name("words").glob("*.txt")}
LISTS = {language: Path(path).read_text("utf-8").splitlines() for language, path in FILES.items()}
PIECES = (
    "damn",
    "DAMN",
    "bad word",
    "a$$",
    "caps",
    "Caps",
    "ÉTÉ",
    "été",
    "ばか",
    "グロ",
    "İ",
    "_",
    " ",
    "\n",
    "\u0301",
    "x",
    "1",
)
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.text(max_size=30)


def has_bad_word(text: str, language: str | None) -> bool:
    listed = set(LISTS.get(language or "", ())) - {"sm", "グロ", "女の子", "性"}
    if not listed:
        return False
    spelled = "|".join(map(re.escape, listed))
    pattern = spelled if language in ("ja", "th", "zh") else rf"(?:\W|^)({spelled})(?:\W|$)"
    return re.search(pattern, text.lower()) is not None


def draws(texts: list[str], languages: list[str | None]) -> list[float]:
    columns = pa.array(texts, pa.large_string()), pa.array(languages, pa.string())
    computed = c4_badwords.compute_signals(*columns, 0, c4_badwords.Limits(bad_words=FILES))
    return [float(draw) for draw in computed.signals[:, 0]]


@given(st.lists(st.tuples(TEXTS, st.sampled_from(["en", "ja", "de", "fr", None])), max_size=5))
@example([("damn", "en"), ("damned", "en"), ("x_damn", "en"), ("e\u0301damn", "en"), ("bad  word", "en")])
def test_bad_words_are_found_as_upstream_finds_them(rows: list[tuple[str, str | None]]) -> None:
    computed = draws([text for text, _ in rows], [language for _, language in rows])
    assert [draw > 0 for draw in computed] == [has_bad_word(*row) for row in rows]
    assert [draw for draw in computed if not 0 <= draw <= 1] == []


def test_a_share_of_texts_with_bad_words_stays_the_same_ones_in_any_company() -> None:
    texts = [f"damn {number}" for number in range(400)]
    drawn = draws(texts, ["en"] * len(texts))
    assert 0.2 < sum(draw <= 0.3 for draw in drawn) / len(texts) < 0.4
    assert drawn[7:9] == draws(texts[7:9], ["en", "en"])
    assert 0 < min(drawn) < 0.05
    assert 0.95 < max(drawn) <= 1


def test_lists_are_asked_of_their_language_and_are_identity(tmp_path: Path) -> None:
    table = documents(["Oh damn it", "Oh verdammt", "fine"], language=pa.array(["en", "de", "en"]))
    manifests = []
    for words in ("damn\n", "darn\n"):
        path = tmp_path / f"{words.strip()}.txt"
        path.write_text(words)
        params = {"profiles": ["c4_badwords"], "c4_badwords": {"bad_words": {"en": str(path)}}}
        manifests.append(refined(tmp_path, "filter_quality", commit_parent(tmp_path, [table]), params)[1])
    assert [manifest.rejected for manifest in manifests] == [{"c4_badwords:document_removed_with_badwords": 1}, {}]
    assert manifests[0].fingerprint != manifests[1].fingerprint
    with pytest.raises(RecipeError, match="c4_badwords"):
        Params(profiles=("c4_badwords",))


def test_published_lists_are_read(shared_data: Path, tmp_path: Path) -> None:
    lines = gzip.decompress((shared_data / "resources" / "badwords.jsonl.gz").read_bytes()).splitlines()
    lists = {entry["lang"]: entry["words"] for entry in map(json.loads, lines)}
    paths = {}
    for language, words in lists.items():
        (tmp_path / language).write_text("\n".join(words))
        paths[language] = str(tmp_path / language)
    spelled = {language: [word for word in words if word == word.lower()] for language, words in lists.items()}
    codes = [language for language, words in spelled.items() for _ in words]
    table = documents([f"{word}." for words in spelled.values() for word in words], language=pa.array(codes))
    params = Params(profiles=("c4_badwords",), limits={"c4_badwords": {"bad_words": paths}})
    (out,) = filter_texts(iter(table.combine_chunks().to_batches()), params=params)
    passed = [
        text for text, reason in zip(out["text"].to_pylist(), out["reason"].to_pylist(), strict=True) if not reason
    ]
    assert set(passed) <= {f"{word}." for word in c4_badwords.COMMON}


@given(st.lists(st.lists(st.integers(0, 6), max_size=6), max_size=4))
def test_paragraphs_are_counted_as_upstream_judges_them(rows: list[list[int]]) -> None:
    texts = ["\n".join("é" * points for points in row) for row in rows]
    limits = c4_paragraphs.Limits(min_paragraph_len=4)
    computed = c4_paragraphs.compute_signals(
        pa.array(texts, pa.large_string()), pa.nulls(len(texts)), 0, limits
    ).signals
    lengths = [[len(line) for line in text.split("\n")] for text in texts]
    expected = [len(lines) >= 3 and min(heapq.nlargest(3, lines)) >= 4 for lines in lengths]
    assert [long >= 3 for (long,) in computed] == expected
