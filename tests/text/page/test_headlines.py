"""The text of a page has its headline, which is what its title says, once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.page.main_text import BLOCKS, main_text

PROSE = "The river was low that summer, and the children walked across it on stones to the mill. "
ARTICLE = "".join(f"<p>Part {number}. {PROSE * 3}</p>" for number in range(9))
TITLE = "Why the old mill stands still"


def text_of(body: str, title: str = TITLE, shared: str = "", output: str = "plain") -> str:
    head = f'<title>{title}</title><meta property="og:title" content="{shared}">'
    html = f"<html><head>{head}</head><body>{body}</body></html>"
    return main_text(html, BLOCKS, output="markdown" if output == "markdown" else "plain").text


@pytest.mark.parametrize(
    ("title", "shared", "heading"),
    [
        (TITLE, "", TITLE),
        (f"{TITLE} | The Valley Post", "", TITLE),
        (f"{TITLE} - The Valley Post, news of all the valley and its neighbors, with sports and weather", "", TITLE),
        ("The Valley Post", TITLE, TITLE),
        ("Old mill, still", "The old mill: why it stands still", "Why it is that the old mill stands still"),
        ("水車小屋が止まった理由|谷の新聞", "", "水車小屋が止まった理由"),
        (TITLE, "", f"<span>Mills</span> {TITLE}"),
        (TITLE, "", f"<script>say('{PROSE}')</script>{TITLE}<a class=headerlink href=#t>¶</a>"),
        ("水車の町", "", "<ruby>水車<rt>すいしゃ</rt></ruby>の町"),
    ],
)
def test_the_headline_is_before_the_first_paragraph(title: str, shared: str, heading: str) -> None:
    headline = {"<span": f"Mills {TITLE}", "<scri": TITLE, "<ruby": "水車の町"}.get(heading[:5], heading)
    body = f"<h1>The Valley Post</h1><div class=sidebar><h1>{heading}</h1></div>{ARTICLE}"
    assert text_of(body, title, shared).partition("Part 0.")[0].endswith(f"\n\n{headline}\n\n")
    assert text_of(body, title, shared, "markdown").partition("Part 0.")[0].endswith(f"\n\n# {headline}\n\n")


def test_a_section_that_says_what_the_title_says_is_not_put_in_front() -> None:
    sections = "".join(f"<h1>{number}. {TITLE * (number == 3)}</h1>{ARTICLE}" for number in range(1, 5))
    assert text_of(sections).count(TITLE) == 1


def test_the_headline_of_a_manual_stays_where_it_is() -> None:
    html = f"<html><head><title>{TITLE}</title></head><body><p>{PROSE}</p><h1>{TITLE}</h1>{ARTICLE}</body></html>"
    text = main_text(html, BLOCKS).text
    assert text.startswith(f"{PROSE.strip()}\n\n{TITLE}\n\nPart 0.")


@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=40))
def test_any_title_and_headings_leave_the_text_whole(title: str, shared: str, heading: str) -> None:
    said = [part.replace("<", "").replace('"', "").replace("&", "") for part in (title, shared, heading)]
    text = text_of(f"<h1>{said[2]}</h1>{ARTICLE}", said[0], said[1])
    assert text.endswith(text_of(ARTICLE))


@pytest.mark.parametrize("site", ["The Valley Post", "News"])
def test_a_headline_is_the_heading_with_most_of_the_title_and_no_name_of_a_site(site: str) -> None:
    head = f"<header><h2>{site}</h2><nav><a href=/>Home</a></nav></header>"
    foot = f"<div><h2>{site}</h2><p>Part of <a href=/>{site}</a></p><p>Last updated in May</p></div>"
    body = f"{head}<div><h3>{TITLE}</h3><a>Share</a><div>3 May</div></div>{ARTICLE}{foot}"
    lines = text_of(body, f"{TITLE} | {site}").split("\n")
    assert lines.count(TITLE) == 1
    assert site not in lines


def test_a_word_of_the_title_behind_the_text_is_no_headline() -> None:
    body = (
        f"{ARTICLE}<div><h2>GIT</h2><p>Part of the <a href=/>git(1)</a> suite</p><p>Updated 2026-07-30 13:26</p></div>"
    )
    assert text_of(body, "gitprotocol-v2(5)").rstrip().endswith(PROSE.rstrip())
