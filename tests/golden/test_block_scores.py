"""The scores of `benchmarks/blocks.py`: what they count, and that a page that has all of it has the whole score."""

from html import unescape

import pytest

from benchmarks import block_pages, block_scores

TABLE = [["", "day", "rain"], ["north", "4", "a|b"], ["south", "9", ""]]
MARKDOWN = (
    "Text | with a pipe\n\n|  | day | rain |\n| --- | --- | --- |\n| north | 4 | a\\|b |\n| south | 9 |  |\n\nEnd"
)
PLAIN = "Text\n\n\tday\train\nnorth\t4\ta|b\nsouth\t9\n\nEnd"


def test_words_are_counted_with_repetition() -> None:
    assert block_scores.word_scores("A a b", "a B c") == pytest.approx((2 / 3, 2 / 3, 2 / 3))
    assert block_scores.word_scores("", "a")[0] == 0
    assert block_scores.word_scores("!", "")[0] == 1


def test_a_box_is_kept_by_its_runs_of_words() -> None:
    assert block_scores.kept_share("x one two three four y", "One two three four") == 1
    assert block_scores.kept_share("one two three", "one two three four") == 0.5
    assert block_scores.kept_share("three one two", "one two three") == 0
    assert block_scores.kept_share("\u96e8\u91cf\u5668\u5728", "\u96e8\u91cf\u5668\u5e94") == 0.5


@pytest.mark.parametrize(
    "found",
    [
        r"\(\frac{a}{2} \leq x^{2}\)",
        r"\[\displaystyle\frac{a}{2}\le x^2\]",
        r"$\frac a{2} ≤ x^{2}$".replace("frac a", "frac{a}"),
        r"\({\displaystyle \frac{\mathrm{a}}{2} \leq {x}^{2}}\)",
    ],
)
def test_writings_of_a_formula_are_the_same(found: str) -> None:
    text = f"It is said: {found}. The sea\nis calm."
    assert block_scores.formula_similarity(text, "It is said", r"\frac{a}{2} \leq x^{2}", "The sea is calm") == 1


def test_formulas_that_are_lost_doubled_or_flat_score_less() -> None:
    score = block_scores.formula_similarity
    assert score("It is said. The sea", "It is said", "x^2+y", "The sea") == 0
    assert score("It is said", "It is said", "x^2+y", "The sea") == 0
    assert score("It is said: x^2+yx^2+y. The sea", "It is said", "x^2+y", "The sea") == pytest.approx(0.5)
    assert score("It is said: x2+y. The sea", "It is said", "x^2+y", "The sea") == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("```\nif a:\n    b\n```", 1),
        ("    if a:\n        b", 1),
        ("if a:\nb", 0.5),
        ("if a: b", 0),
        ("1 if a:\n2     b", 0),
    ],
)
def test_lines_of_code_need_their_indentation(text: str, share: float) -> None:
    assert block_scores.code_share(text, "if a:\n\n    b") == share


@pytest.mark.parametrize("text", [MARKDOWN, PLAIN])
def test_a_table_is_read_from_pipes_and_tabs(text: str) -> None:
    assert block_scores.table_similarity(text, TABLE) == 1


def test_a_table_costs_its_edits() -> None:
    whole = 1 + 3 * 1 + 3 + 3 + 2  # the table, its rows, its cells
    lost_row = "\tday\train\nnorth\t4\ta|b"
    assert block_scores.table_similarity(lost_row, TABLE) == pytest.approx(1 - 3 / whole)
    assert block_scores.table_similarity(PLAIN.replace("south", "mouth"), TABLE) == pytest.approx(1 - 0.2 / whole)
    assert block_scores.table_similarity("north 4 a|b south 9", TABLE) == 0


def test_terms_are_right_before_their_descriptions() -> None:
    pairs = [["oar", "It is of wood."], ["crate", "It is full."]]
    assert block_scores.term_share("**oar**\n: It is of wood.\n\ncrate and oar\nIt is full.", pairs) == 0.5


def test_names_change_and_what_refers_to_them_does_too() -> None:
    page = b"<p class='a b' id=c data-id=c><a href=\"#c\">class=a</a><a href=c><label for=c></p>"
    wanted = b"<p class='A B' id=C data-id=c><a href=\"#C\">class=a</a><a href=c><label for=C></p>"
    assert block_scores.renamed(page, bytes.upper) == wanted


def test_written_pages_have_what_is_wanted_of_them() -> None:
    assert len(block_pages.proses()) == 10
    formulas = list(block_pages.formula_pages())
    assert len(formulas) == 60
    assert len({page.html for page in formulas}) == 60
    for boxes in (*block_pages.note_pages(), *block_pages.description_pages()):
        assert all(box in unescape(boxes.html) for box in boxes.wanted)
    for page in formulas:
        if page.kind == "raw":
            text = unescape(page.html).replace("<p>", "").replace("</p>", "")
            assert [block_scores.formula_similarity(text, *wanted) for wanted in page.wanted] == [1.0] * 4
