"""Windows of pages and answers come out of shared files as they were written."""

import os
import tempfile

from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.page.sandbox_messages import (
    OUTCOMES,
    Page,
    Result,
    read_answers,
    read_pages,
    write_answer,
    write_pages,
)

PAGES = st.builds(Page, st.binary(max_size=50), st.text(max_size=9), st.integers(0, 2**32 - 1), st.integers(0, 255))
RESULTS = st.builds(
    Result,
    st.sampled_from(OUTCOMES),
    st.binary(max_size=50),
    st.none() | st.text("ab\0é", min_size=1, max_size=9).filter(lambda text: text.strip("\0")),
    st.none() | st.just("en"),
    st.none() | st.just("2026-11-20"),
    st.text("x", max_size=3),
    st.none() | st.just("plain"),
    st.integers(0, 9),
    st.none() | st.just("koi8-r"),
    st.none() | st.binary(max_size=20),
)


@given(st.lists(PAGES, max_size=6))
def test_pages(pages: list[Page]) -> None:
    with tempfile.TemporaryFile() as file:
        head, size = write_pages(file.fileno(), "method", pages)
        window = memoryview(os.pread(file.fileno(), size, 0))
        assert bytes(window[:6]) == b"method"
        assert [page._replace(body=bytes(page.body)) for page in read_pages(window, 6, head, len(pages))] == pages


@given(st.lists(RESULTS, max_size=6))
def test_answers(results: list[Result]) -> None:
    with tempfile.TemporaryFile() as file:
        at = 0
        for result in results:
            at = write_answer(file.fileno(), 7, result, at)
        answers = [
            answer._replace(text=bytes(answer.text), blocks=None if answer.blocks is None else bytes(answer.blocks))
            for answer in read_answers(file.fileno(), 7, at)
        ]
        assert answers == [result._replace(title=(result.title or "").replace("\0", "") or None) for result in results]
        assert not list(read_answers(file.fileno(), 8, at))


def test_an_answer_that_is_cut_short_is_none() -> None:
    with tempfile.TemporaryFile() as file:
        end = write_answer(file.fileno(), 7, Result("done", b"words"), 0)
        assert not list(read_answers(file.fileno(), 7, end - 1))
