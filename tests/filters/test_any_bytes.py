"""Whatever a string column may hold, and in whatever company: no profile crashes, and each text gets its own verdict."""

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline_tasks.filters import Filter, c4_badwords, seeds
from pipeline_tasks.stage import FilePath
from pipeline_tasks.stages.filter_quality import FILTERS, Params, filter_texts, signals_column
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


def column(raw: list[bytes]) -> pa.Array:
    """The bytes as a string column, which Arrow takes on trust."""
    offsets = np.cumsum([0, *map(len, raw)]).astype(np.int64)
    return pa.LargeStringArray.from_buffers(len(raw), pa.py_buffer(offsets), pa.py_buffer(b"".join(raw)))


def signals(card: Filter, texts: pa.Array, languages: list[str | None], words: int) -> npt.NDArray[np.float64]:
    codes, limits = pa.array(languages, pa.string()), LIMITS.get(card.name, card.limits())
    computed = card.compute_signals(texts, codes, words, limits)
    values: npt.NDArray[np.float64] = computed.signals
    if card.cuts is not None:
        assert len(card.cuts.trace(texts, computed.removed, limits)) == sum(
            map(len, texts.cast(pa.large_binary()).to_pylist())
        )
    return values


@EVERY
@WORDS
@few_examples
@given(raw=st.lists(BROKEN, max_size=4))
@example(raw=[b"\xed\xa0\xbd\xed\xb8\x80", b"\xe2\x80", b"\xf0\x9f\x98"])
def test_invalid_utf8_has_the_same_signals_alone_and_in_a_batch(card: Filter, words: int, raw: list[bytes]) -> None:
    """Surrogates of UTF-16 come as three bytes each, which are no UTF-8."""
    languages = [LANGUAGES[at % len(LANGUAGES)] for at in range(len(raw))]
    whole = signals(card, column(raw), languages, words)
    assert np.isfinite(whole).all()
    assert (whole >= 0).all()
    alone = [signals(card, column([text]), [language], words)[0] for text, language in zip(raw, languages, strict=True)]
    assert whole.tolist() == [row.tolist() for row in alone]


@EVERY
@WORDS
@few_examples
@given(texts=st.lists(ODD, max_size=5), seed=st.randoms(use_true_random=False))
def test_odd_texts_have_the_same_signals_in_any_order(card: Filter, words: int, texts: list[str], seed: object) -> None:
    languages = [LANGUAGES[len(text) % len(LANGUAGES)] for text in texts]
    order = list(range(len(texts)))
    seed.shuffle(order)  # type: ignore[attr-defined]
    whole = signals(card, pa.array(texts, pa.large_string()), languages, words)
    assert np.isfinite(whole).all()
    turned = pa.array([texts[at] for at in order], pa.large_string())
    assert signals(card, turned, [languages[at] for at in order], words).tolist() == whole[order].tolist()


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
    values = signals(card, pa.array(texts, pa.large_string()), ["en", "en", "en", "zh"], 0)
    assert np.isfinite(values).all()
