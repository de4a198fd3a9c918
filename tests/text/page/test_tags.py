"""A survey of markup: how deep it nests, and whether it has a date, in any encoding that contains ASCII."""

import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.page.metadata import DATED, TIMED
from pipeline_tasks.text.page.tags import UNNESTED, survey

DEEPEST = 2000
PARTS = re.findall(
    r"\S+", "<div> </div> <DIV\x0bclass=a> <p> <br/> <b <x/> text <!-- --> <h1> </h1> <optgroup> <optgroups> & </> <1>"
)
TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*+)([^<>]*+)>")


def depth_of(html: str) -> int:
    depth = highest = 0
    for slash, name, rest in TAG.findall(html):
        if not rest.endswith("/") and name.lower() not in UNNESTED:
            depth = max(depth - 1, 0) if slash else depth + 1
            highest = max(highest, depth)
    return min(highest, DEEPEST + 1)


@given(st.lists(st.lists(st.sampled_from(PARTS)).map("".join), min_size=1), st.sampled_from(["utf-8", "utf-16-le"]))
def test_depth_is_exact_above_the_limit_and_never_too_low(pages: list[str], encoding: str) -> None:
    column = pa.array([page.encode(encoding) for page in pages], pa.large_binary())
    depths = [depth_of(page) for page in pages]
    assert survey(column, -1, DEEPEST).depth.tolist() == depths
    for surveyed, depth in zip(survey(column, 3, DEEPEST).depth.tolist(), depths, strict=True):
        assert surveyed == depth or depth <= surveyed <= 3


@pytest.mark.parametrize(
    ("html", "depth"),
    [
        ("<div>" * 3000 + "</div>" * 3000, DEEPEST + 1),
        ("</x>" * 5000 + "<div>" * 2500, DEEPEST + 1),
        ("<b>x</b><br>" * 50_000, 1),
        ("", 0),
    ],
)
def test_depth_of_long_pages(html: str, depth: int) -> None:
    surveyed = survey(pa.array([html.encode()], pa.large_binary()), 250, DEEPEST).depth[0]
    assert surveyed == depth


@given(
    st.text(st.sampled_from("<time publishedP_")),
    st.sampled_from(["", "<time", "article:published_time", "datePublished", "unpublished", "<tim"]),
    st.text(st.sampled_from("<ubli x"), max_size=200),
)
def test_dates_are_seen_wherever_they_stand(before: str, word: str, after: str) -> None:
    html = before + word + after
    dated, timed = ("published_time" in html or "Published" in html), "<time" in html
    column = pa.array([b"", html.encode(), None, html.encode()], pa.large_binary())
    wanted = DATED * dated | TIMED * timed
    assert survey(column, 250, DEEPEST).bits.tolist() == [0, wanted, 0, wanted]
    assert survey(column.slice(1), 250, DEEPEST).bits.tolist() == [wanted, 0, wanted]
