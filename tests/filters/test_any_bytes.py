"""Whatever a string column may hold, and in whatever company: no profile crashes, and each text gets its own verdict."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline_tasks.filters import Filter, c4_badwords, seeds
from pipeline_tasks.stage import FilePath
from pipeline_tasks.stages.filter_quality import FILTERS, Params, filter_texts, signals_column
from pipeline_tasks.testing.filters import TEXTS, check_filter
from tests.documents import documents
from tests.examples import few_examples

LISTS = Path(__file__).with_name("words")
LIMITS = {
    "c4_badwords": c4_badwords.Limits(bad_words={"en": FilePath(f"{LISTS}/en.txt"), "ja": FilePath(f"{LISTS}/ja.txt")}),
    "seeds": seeds.Limits(toxic_words=FilePath(f"{LISTS}/en.txt")),
}
EVERY = pytest.mark.parametrize("card", FILTERS.values(), ids=list(FILTERS))
WORDS = pytest.mark.parametrize("words", [0, 1, 3], ids=["split", "unicode", "spacy"])
LANGUAGES = ("en", "de", "zh", "ja", "th", "ko", None)
BROKEN = st.binary(max_size=60) | st.lists(
    st.sampled_from([b"the ", b"\xff", b"\xc3", b"\xe2\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\n", b"[1]", b"{", b". "]),
    max_size=25,
).map(b"".join)  # fmt: skip
ODD = st.text(max_size=40) | st.one_of(
    st.builds(lambda letter, times: letter * times, st.characters(exclude_categories=["Cs"]), st.integers(0, 300)),
    st.text(st.sampled_from(" \t\n\r\x0b\x0c\x1c\x85\xa0\u2028\u3000\ufeff\0"), max_size=30),
)


@EVERY
@WORDS
@few_examples
@given(texts=st.lists(BROKEN, max_size=4) | st.lists(ODD, max_size=5))
@example(texts=list(TEXTS))
def test_any_bytes_have_signals_that_are_the_same_in_any_company(
    card: Filter, words: int, texts: list[str | bytes | None]
) -> None:
    check_filter(card, texts=texts, words=words, limits=LIMITS.get(card.name))


@pytest.mark.parametrize("packs", ["builtin", "fineweb2", "none"])
@few_examples
@given(rows=st.lists(st.tuples(ODD, st.sampled_from(LANGUAGES)), min_size=1, max_size=5), at=st.integers(0, 5))
def test_verdicts_are_the_same_alone_or_in_company(packs: str, rows: list[tuple[str, str | None]], at: int) -> None:
    profiles = tuple(name for name in FILTERS if name != "c4_badwords")
    params = Params(profiles=profiles, packs=packs, edit=True)  # type: ignore[arg-type]

    def judged(some: list[tuple[str, str | None]]) -> list[dict[str, object]]:
        docs = documents([text for text, _ in some], language=pa.array([language for _, language in some], pa.string()))
        batches = docs.combine_chunks().to_batches()
        kept = pa.Table.from_batches(filter_texts(iter(batches), params=params)) if batches else pa.table({})
        return (
            kept.select(["text", *map(signals_column, profiles), "edit_spans", "reason", "evidence"]).to_pylist()
            if batches
            else []
        )

    whole = judged(rows)
    assert whole == [*judged(rows[:at]), *judged(rows[at:])]
    first = [json.loads(str(row["evidence"]))[0]["rule"] if row["evidence"] else None for row in whole]
    assert [row["reason"] for row in whole] == first


@EVERY
def test_a_huge_line_and_a_million_words_have_signals(card: Filter) -> None:
    texts = ["x" * 3_000_000, "ab " * 1_000_000, "a\n" * 300_000, "中" * 300_000]
    languages = pa.array(["en", "en", "en", "zh"])
    limits = LIMITS.get(card.name, card.limits())
    assert np.isfinite(card.compute_signals(pa.array(texts, pa.large_string()), languages, 0, limits).signals).all()
