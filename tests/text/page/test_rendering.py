"""What a browser shows of a page is its text by each method, and what it hides is not."""

import html
import itertools

import pytest

from pipeline_tasks.text.page.main_text import METHODS, load, main_text
from pipeline_tasks.text.page.normal_form import normalize_text
from pipeline_tasks.text.page.rendering import rendered

BEFORE = (
    "<p>The harbour master wrote every morning what the tide had left on the stones, and in the evening he read the "
    "list aloud to whoever came. Nobody had asked him to do it, and nobody asked him to stop.</p>"
    "<p>After some years the list was longer than the book of the parish, and people began to look in it for the days "
    "of their lives. A widow found the day of her wedding beside a broken oar and two crates of oranges.</p>"
)
AFTER = (
    "<p>When the old man died the list was bound in seven volumes and kept in the school, where children still learn "
    "to read from it. They like the winters best, since in winter the sea brings the strangest things.</p>"
    "<p>The last entry is in another hand. It says that the tide was low, that the light was good, and that nothing at "
    "all had been left on the stones that day.</p>"
)
ARTICLE = '<meta property="og:type" content="article">'
SECRET = "This text is not for the readers of the page, and it was never shown to any of them."
SHOWN = "The keeper of the light lived here with his two daughters until the year of the flood."
COLUMNS = "<table><tr><td>oar</td><td>4</td></tr><tr><td>crate</td><td>9</td></tr></table>"


def text_of(inner: str, method: str, head: str = "") -> str:
    load(method)
    body = f"<nav><a href=/>Home</a></nav><main><h1>The list</h1>{BEFORE}{inner}{AFTER}</main>"
    html = f"<!doctype html><html lang=en><head><title>The list</title>{head}</head><body>{body}</body></html>"
    text = normalize_text(main_text(html, method).text)
    assert "harbour master wrote" in text
    assert "nothing at all had been left" in text
    return text


def every(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("method", [method for method in METHODS if method not in names])


@every()
@pytest.mark.parametrize("head", ["", ARTICLE])
@pytest.mark.parametrize(
    "start",
    [
        "<p hidden>",
        '<p hidden="hidden">',
        '<p style="display:none">',
        '<p style="color: red; display: none !important">',
        '<p STYLE="DISPLAY:NONE">',
        '<p style="visibility:hidden">',
        '<p style="visibility: collapse">',
        '<p style="opacity: 0">',
        '<p style="color:red;opacity:0.0;">',
        '<p style="position:absolute; left:-9999px">',
        '<p style="position: absolute; top: -10000px">',
        '<p style="text-indent:-9999em">',
        '<p style="font-size:0">',
        '<p style="position:absolute;clip: rect(0, 0, 0, 0)">',
        '<p style="clip-path: inset(50%)">',
        '<p class="sr-only">',
        '<p class="visually-hidden">',
        '<p class="screen-reader-text">',
        '<p role="dialog" aria-hidden="true">',
    ],
)
def test_what_is_not_drawn_is_no_text(start: str, head: str, method: str) -> None:
    text = text_of(f"{start}{SECRET}</p>", method, head)
    assert SECRET not in text


@every()
@pytest.mark.parametrize("element", ["template", "canvas", "video", "audio", "noscript", "dialog"])
def test_what_is_for_other_browsers_is_no_text(element: str, method: str) -> None:
    assert SECRET not in text_of(f"<{element}><p>{SECRET}</p></{element}>", method, ARTICLE)


@every()
@pytest.mark.parametrize(
    "start",
    [
        '<p hidden="until-found">',
        '<p style="opacity: 0.5">',
        '<p style="opacity:0; transform: translateY(20px)">',
        '<p style="opacity:0" data-reveal="fade">',
        '<p style="left:-10px">',
        '<p style="font-size:0.9em">',
        '<p style="max-height:0">',
        '<p role="dialog" aria-hidden="false">',
        '<p role="dialog">',
    ],
)
def test_what_is_drawn_or_about_to_be_is_text(start: str, method: str) -> None:
    if method != "resiliparse":  # it leaves out all that has the attribute
        assert SHOWN in text_of(f"{start}{SHOWN}</p>", method, ARTICLE)


@pytest.mark.parametrize("method", ["trafilatura", "justext"])
def test_what_a_page_offers_to_switch_to_is_text(method: str) -> None:
    units = f'<div class="unit"><p>{SHOWN}</p></div><div class="unit imperial" hidden><p>{SHOWN[4:]}</p></div>'
    assert text_of(units, method).count(SHOWN[4:]) == 2


@every()
@pytest.mark.parametrize("frame", ["<div style='display:none'><main>", "<div hidden><main>"])
def test_the_frame_of_a_page_is_shown_by_its_script(frame: str, method: str) -> None:
    load(method)
    html = f"<html lang=en><body>{frame}<h1>The list</h1>{BEFORE}{AFTER}</main></div></body></html>"
    assert "harbour master" in main_text(html, method).text


@every()
def test_text_for_screen_readers_is_not_glued_to_the_next_word(method: str) -> None:
    inner = f'<p><span class="sr-only">Opens in a new window</span>{SHOWN}</p>'
    assert f"\n{SHOWN}" in text_of(inner, method)


@every()
def test_what_is_drawn_in_the_place_of_text_for_screen_readers_is_kept(method: str) -> None:
    inner = '<p>It cost <span class="sr-only">4 pounds</span><span aria-hidden="true">£4</span> in the year of the flood.</p>'
    assert "It cost £4 in the year" in text_of(inner, method)


@every()
def test_a_second_root_is_not_shown(method: str) -> None:
    root = "<template shadowrootmode=open><p>{}</p></template>"
    inner = f"<my-card>{root.format(SHOWN)}{root.format(SECRET)}</my-card>"
    text = text_of(inner, method)
    assert SHOWN in text
    assert SECRET not in text


@every()
@pytest.mark.parametrize("mode", ["shadowrootmode=open", 'shadowrootmode="closed"', "shadowroot=open"])
def test_shadow_roots_are_opened(mode: str, method: str) -> None:
    assert SHOWN in text_of(f"<my-card><template {mode}><p>{SHOWN}</p></template></my-card>", method)


@every()
def test_slots_are_filled(method: str) -> None:
    root = f"<p><slot name=who>Nobody</slot> lived here, {SHOWN}</p><slot>{SECRET}</slot>"
    inner = f'<my-card><template shadowrootmode="open">{root}</template><b slot=who>Ann</b><p>{SHOWN}</p></my-card>'
    text = text_of(inner, method)
    assert f"Ann lived here, {SHOWN}" in text
    assert text.count(SHOWN) == 2
    assert "Nobody lived" not in text
    assert SECRET not in text


@every()
@pytest.mark.parametrize("head", ["", ARTICLE])
@pytest.mark.parametrize(
    ("html", "written"),
    [
        ("<math><mi>a</mi><mo>≠</mo><mn>0</mn></math>", "a≠0"),
        ("<math><mfrac><mi>a</mi><mi>b</mi></mfrac></math>", r"\(\frac{a}{b}\)"),
        ("<math><msup><mi>c</mi><mn>2</mn></msup></math>", r"\(c^2\)"),
        ("<math alttext='c^{2}'><mi>c</mi><mn>2</mn></math>", r"\(c^{2}\)"),
        (
            "<math display=block><semantics><mi>c</mi><annotation encoding='application/x-tex'>\\vec c</annotation></semantics></math>",
            r"\[\vec c\]",
        ),
        (
            (
                '<span class="katex"><span class="katex-mathml"><math><semantics><mi>E</mi><annotation encoding="application/x-tex">'
                'E=mc^2</annotation></semantics></math></span><span class="katex-html" aria-hidden="true"><span>E=mc2</span></span></span>'
            ),
            r"\(E=mc^2\)",
        ),
        (
            (
                '<span class="MathJax_Preview"></span><span class="MathJax"><nobr>Emc2</nobr></span>'
                '<script type="math/tex">E=mc^2</script>'
            ),
            r"\(E=mc^2\)",
        ),
        ('<script type="math/tex; mode=display">\\sum x</script>', r"\[\sum x\]"),
        (
            (
                '<mjx-container display="true"><mjx-math aria-hidden=true><mjx-mi></mjx-mi></mjx-math><mjx-assistive-mml><math>'
                "<msqrt><mi>x</mi></msqrt></math></mjx-assistive-mml></mjx-container>"
            ),
            r"\[\sqrt{x}\]",
        ),
        ('<mjx-container><mjx-math data-latex="x_1"></mjx-math></mjx-container>', r"\(x_1\)"),
        (
            (
                '<span class="mwe-math-element"><span style="display: none;"><math alttext="{\\displaystyle k}"><mi>k</mi></math></span>'
                '<img alt="{\\displaystyle k}" aria-hidden="true"></span>'
            ),
            r"{\displaystyle k}",
        ),
        ('<img src="/latex.php?latex=k" alt="k">', "k"),
        ('<img src=x.png alt="\\alpha + 1">', r"\(\alpha + 1\)"),
        (r"\(a_1\)", r"\(a_1\)"),
    ],
)
def test_a_formula_is_there_once_as_tex(html: str, written: str, head: str, method: str) -> None:
    inner = f"<p>It is known to all that {html} holds for every body at rest in the house of the keeper.</p>"
    assert f"known to all that {written} holds for every body" in text_of(inner, method, head)


@every()
@pytest.mark.parametrize(
    ("html", "lines"),
    [
        ("<ol start=4><li>{}<li>{}</ol>", "45"),
        ("<ol><li value=7>{}<li><p>{}</p></ol>", "78"),
        ("<ol reversed><li>{}<li>{}</ol>", "21"),
        ("<ol type=a start=3><li>{}<li>{}</ol>", "cd"),
    ],
)
def test_items_have_the_numbers_that_are_shown(html: str, lines: str, method: str) -> None:
    first, second = (
        "Turn the boat on its side, and wait until it is dry.",
        "Paint the keel with tar, and then with oil.",
    )
    text = text_of(html.format(first, second), method)
    assert f"{lines[0]}. {first}" in text
    assert f"{lines[1]}. {second}" in text
    assert f". {lines[0]}. " not in text


@every("resiliparse", "trafilatura", "justext")
def test_numbers_are_written_once_beside_what_needs_a_tree(method: str) -> None:
    assert "\n4. Bread" in text_of(f"<p>He said <q>go</q>: {SHOWN}</p><ol start=4><li>Bread is baked.</ol>", method)


@every()
def test_quotations_have_their_marks(method: str) -> None:
    assert 'He said "come in" twice and' in text_of(f"<p>He said <q>come in</q> twice and then: {SHOWN}</p>", method)
    assert "He said “come in” twice" in text_of(f"<p>He said <q>“come in”</q> twice: {SHOWN}</p>", method)


@every()
@pytest.mark.parametrize("alt", ["🎉", "❤️", "1️⃣"])
def test_emoji_that_are_pictures_are_text(alt: str, method: str) -> None:
    inner = (
        f'<p>The bell is back <img class="emoji" src=x.svg alt="{alt}"> and rings again in the fog of the harbour.</p>'
    )
    assert f"The bell is back {normalize_text(alt)} and rings" in text_of(inner, method)


@every()
def test_names_of_icons_are_no_text(method: str) -> None:
    inner = (
        f'<p><i class="material-icons">expand_more</i> <span class="material-symbols-outlined">home</span> {SHOWN}</p>'
    )
    text = text_of(inner, method)
    assert SHOWN in text
    assert "expand_more" not in text
    assert "home" not in text


@every()
@pytest.mark.parametrize(
    "ruby",
    [
        '<ruby><rb aria-hidden="true">浦島</rb><rt>うらしま</rt></ruby>',
        "<ruby>浦島<rp>(</rp><rt>うらしま</rt><rp>)</rp></ruby>",
        "<ruby>浦<rt>うら</rt>島<rt>しま</rt></ruby>",
    ],
)
def test_readings_do_not_part_words(ruby: str, method: str) -> None:
    assert "the fisherman 浦島という was" in text_of(
        f"<p>In this story the fisherman {ruby}という was here: {SHOWN}</p>", method
    )


@every()
@pytest.mark.parametrize("head", ["", ARTICLE])
def test_a_table_in_a_table_has_each_cell_once(head: str, method: str) -> None:
    inner = "<table><tr><td>Wood</td><td><table><tr><td>oak</td><td>pine</td></tr></table></td></tr><tr><td>Glass</td><td>green</td></tr></table>"
    text = text_of(inner, method, head)
    assert [text.count(cell) for cell in ("oak", "pine")] in ([1, 1], [0, 0])  # jusText keeps no tables
    assert method in ("trafilatura", "justext") or "|" not in text


@every("justext")
@pytest.mark.parametrize("head", ["", ARTICLE])
def test_the_caption_of_a_table_is_kept(head: str, method: str) -> None:
    caption = "Table 1: what the sea had left in that year of the list."
    assert caption in text_of(f"<figure>{COLUMNS}<figcaption>{caption}</figcaption></figure>", method, head)


@every("justext")
@pytest.mark.parametrize("head", ["", ARTICLE])
def test_questions_that_fold_their_answers_are_kept(head: str, method: str) -> None:
    question, answer = "How long is the pier of the north?", f"It is ninety metres long. {SHOWN}"
    inner = f"<div><h2><button type=button aria-expanded=false>{question}</button></h2><div><p>{answer}</p></div></div>"
    text = text_of(inner, method, head)
    assert text.index(question) < text.index(answer)


@every()
@pytest.mark.parametrize("count", ["193", "11 claps", "11&nbsp;claps", "1.2K", "13 <span>responses</span>"])
def test_a_count_of_readers_is_no_heading(count: str, method: str) -> None:
    inner = f"<div><h4><button class=er>{count}</button></h4></div>"
    assert count.split(maxsplit=1)[0] not in text_of(inner, method)


@pytest.mark.parametrize("method", ["blocks", "resiliparse"])
def test_a_year_that_unfolds_is_a_heading(method: str) -> None:
    inner = f"<div><h3><button aria-expanded=false>1931</button></h3><div><p>{SHOWN}</p></div></div>"
    assert "1931" in text_of(inner, method)


@every()
def test_a_paragraph_that_is_a_link_is_kept(method: str) -> None:
    inner = f"<div><p><a href=/a>{SHOWN}</a></p></div><div><p>They will be heard again in the spring of the next year.</p></div>"
    assert SHOWN in text_of(inner, method, ARTICLE)


@pytest.mark.parametrize("method", ["blocks", "trafilatura"])
def test_verses_that_are_elements_are_lines(method: str) -> None:
    stanza = "<div><div>The sea came up,</div><div>the sea went down,</div></div>"
    inner = f"<div>{stanza}<div><div>and left an oar</div><div>before the town.</div></div></div>"
    assert "The sea came up,\nthe sea went down,\nand left an oar\nbefore the town." in text_of(
        inner, method, ARTICLE
    ).replace("down,\n\n", "down,\n")


@every()
def test_a_reference_is_read_once(method: str) -> None:
    inner = f"<p>Write &amp;lt;b&amp;gt; for bold and &amp;#38;amp; or &#38;amp; for the sign of it. {SHOWN}</p>"
    assert "Write &lt;b&gt; for bold and &#38;amp; or &amp; for the sign" in text_of(inner, method, ARTICLE)


@pytest.mark.parametrize("element", ["<pre>{}</pre>", "<ol start=2>{}</ol>"])
def test_children_are_listed_one_after_the_other(element: str) -> None:
    """A page of 4,000 spans of code took 27 s of the library's own list."""
    parts = "<span>a</span>" if "pre" in element else "<li>a</li>"
    for call in (rendered, lambda page: main_text(page, "resiliparse").text):
        assert call(element.format(parts * 40_000)).count("a") >= 40_000


@pytest.mark.parametrize(
    ("line", "method"),
    [
        *itertools.product(["span class=line", "code"], ["blocks", "resiliparse", "trafilatura"]),
        ("span", "resiliparse"),
        ("span", "trafilatura"),
    ],
)
def test_lines_of_code_that_are_elements_are_lines(line: str, method: str) -> None:
    end = line.partition(" ")[0]
    inner = f"<pre><code><{line}>x = 1</{end}><{line}>y = 2</{end}></code></pre>"
    assert "x = 1\ny = 2" in text_of(inner if line != "code" else inner.replace("<pre><code>", "<pre>"), method)


@pytest.mark.parametrize(
    "name", ["metabolism", "authorization", "unrelated", "market-share", "text-image", "no-sidebar"]
)
@every("trafilatura")
def test_a_part_of_a_name_marks_no_prose(name: str, method: str) -> None:
    inner = (
        f"<p>{SHOWN}</p><p>It must be poured in one stream, since a second pour leaves a seam that will be heard.</p>"
    )
    text = text_of(f"<div class='{name}'>{inner}</div>", method)
    assert SHOWN in text
    assert "a seam that will be heard" in text


@pytest.mark.parametrize("method", ["blocks", "trafilatura"])
@pytest.mark.parametrize("word", ["sí", "là", "m²", "1¾", "5°", "s&iacute;", "m&sup2;", "né", "ю"])
def test_a_short_word_in_an_element_of_its_own_is_kept(word: str, method: str) -> None:
    inner = f"<p>It is said that <b>{word}</b> <i>{word}</i> was written on the wall of the house by the keeper.</p>"
    assert f"that {html.unescape(word)} {html.unescape(word)} was written" in text_of(inner, method)


@every()
def test_hidden_formulas_are_measured_without_their_indentation(method: str) -> None:
    """Wikipedia indents the MathML of each formula, so that a page of formulas has more blanks than shown text."""
    indented = "<mi>k</mi>".join(["\n" + " " * 900] * 3)
    formula = (
        f'<span class="mwe-math-element"><span style="display: none;"><math alttext="{{\\displaystyle k}}">{indented}'
        '</math></span><img alt="{\\displaystyle k}" aria-hidden="true"></span>'
    )
    inner = "".join(f"<p>The number {formula} of day {day} was read aloud by the keeper.</p>" for day in range(9))
    text = text_of(inner, method)
    assert [f"number {{\\displaystyle k}} of day {day}" in text for day in range(9)] == [True] * 9
