"""The text of a PDF is that of its blocks, in the order in which they are read."""

import pytest
from pdf_files import Drawn, lines, pdf, rules
from refinery_files.pdf import read

FIRST = [
    "The river begins in the hills north of the town and is",
    "fed by snow until the end of May, when it is at its",
]
SECOND = ["highest. In a dry year it falls by half a meter in June,", "and mills that stand on it have to stop."]
FULL = [*FIRST, *SECOND]


def parts(*pages: list[Drawn | str]) -> tuple[str, ...]:
    return read(pdf(*pages)).parts


def test_lines_are_paragraphs_and_large_ones_are_headings() -> None:
    other = ["A second paragraph stands a line below of the first one", "and is not a part of it."]
    page = [Drawn(50, 80, "The river", 18), *lines(FULL, y=110), *lines(other, y=170)]
    assert parts(page) == (f"<h1>The river</h1>\n<p>{' '.join(FULL)}</p>\n<p>{' '.join(other)}</p>",)


def test_white_between_lines_parts_paragraphs() -> None:
    full = [
        "A line of a paragraph that goes on to the very same margin",
        "and one more line of it that goes on to the same margin ok",
    ]
    page = [*lines(full), *lines(full, y=132)]
    assert parts(page) == (f"<p>{' '.join(full)}</p>\n<p>{' '.join(full)}</p>",)


def test_a_paragraph_begins_where_a_line_ends_early_or_is_indented() -> None:
    texts = ["The first paragraph has a line of this length, and then one more", "that is short."]
    indented = lines(["The second one begins with an indent, as books have it, and", "it has a second line."], y=124)
    page = [*lines(texts), indented[0]._replace(x=65), *indented[1:]]
    assert parts(page) == (f"<p>{' '.join(texts)}</p>\n<p>{' '.join(one.text for one in indented)}</p>",)


def test_a_paragraph_ends_where_the_next_word_would_have_had_room() -> None:
    texts = [
        "A list of mills is kept in the hall of the town, which is so far",
        "open.",
        "Each of them has a number there, and the name of its owner",
    ]
    assert parts(lines(texts)) == (f"<p>{' '.join(texts[:2])}</p>\n<p>{texts[2]}</p>",)


def test_text_that_is_wrapped_at_a_count_of_letters_is_one_paragraph() -> None:
    texts = [
        "In MMM WWWW MMMM the mills of the town on the hill at the",
        "river are closed again, for most of them have been sold",
        "and still. In MMM WWWW MMMM the mills of the town turn again.",
    ]
    assert parts(lines(texts)) == (f"<p>{' '.join(texts)}</p>",)
    short = ["rye", "oats", "wheat"]
    assert parts([*lines(texts), *lines(short, y=160)])[0].endswith("\n<p>rye</p>\n<p>oats</p>\n<p>wheat</p>")


def test_bold_lines_are_headings_of_the_text_below() -> None:
    assert parts([Drawn(50, 86, "Mills", font="B"), *lines(FULL)]) == (f"<h1>Mills</h1>\n<p>{' '.join(FULL)}</p>",)


def test_columns_are_read_one_after_the_other() -> None:
    other = [
        "Of three mills that stood on it the upper one is left; it",
        "grinds rye in winter, and is shown to guests in summer.",
    ]
    assert parts([*lines(FULL, x=40), *lines(other, x=320)]) == (f"<p>{' '.join(FULL)}</p>\n<p>{' '.join(other)}</p>",)


@pytest.mark.parametrize(("text", "joined"), [("mills", "mills"), ("wa-ter", "wa-ter")])
def test_hyphens_at_ends_of_lines_are_joined_unless_the_document_has_the_compound(text: str, joined: str) -> None:
    page = lines([f"Near the {text} stands a house, and people come for wa-", "ter from all over the hills."])
    (part,) = parts(page)
    assert part.endswith(
        "for wa-ter from all over the hills.</p>" if joined == "wa-ter" else "for water from all over the hills.</p>"
    )


BROKEN = ["The keeper of the mill is a man who is known for his long-", "lost maps of the river and of the hills."]


@pytest.mark.parametrize(
    ("texts", "word"),
    [
        ([], "longlost"),
        (["Of the long-lost maps there are two."], "long-lost"),
        # whether words are broken: one that is whole elsewhere says so, one with its hyphen that they are not
        (["Mills stand in wa-", "ter. The water is high."], "longlost"),
        (["Mills stand in well-", "known towns that are well-known.", "It is long since it was lost."], "long-lost"),
        (["For long the maps of the town were lost."] * 120, "long-lost"),
        (["Nobody has seen the maps for long."] * 120, "longlost"),
    ],
    ids=["nothing", "itself", "breaks words", "breaks none", "rare", "a part is no word"],
)
def test_what_a_document_writes_decides_on_hyphens(texts: list[str], word: str) -> None:
    pages = [lines(texts[at : at + 40], y=60) for at in range(0, len(texts), 40)]
    assert f" his {word} maps " in parts(lines(BROKEN), *pages)[0]


def joined_by(known: str, broken: tuple[str, str]) -> str:
    """Return what becomes of the end of a line and the start of the next, in a document that has a known sentence."""
    text = "The keeper of the mill in the hills has told us of"
    part, _ = parts(lines([f"{text} {broken[0]}", f"{broken[1]} now."]), lines([known]))
    assert (part.startswith(f"<p>{text} "), part.endswith(" now.</p>")) == (True, True), part
    return part.removeprefix(f"<p>{text} ").removesuffix(" now.</p>")


@pytest.mark.parametrize(
    ("broken", "joined"),
    [
        (("d'apt-", "cache"), "d'apt-cache"),
        (("the apt-", "cache's"), "the apt-cache's"),
        (("\u2018apt-", "cache\u2019"), "\u2018apt-cache\u2019"),
        (("(\u201capt-", "cache\u201d)"), "(\u201capt-cache\u201d)"),
        (("my-apt-", "cache"), "my-apt-cache"),
        (("l'aujour-", "d'hui"), "l'aujourd'hui"),
        (("l'apt-", "itude"), "l'aptitude"),
    ],
)
def test_a_broken_word_is_looked_up_without_what_is_not_of_it(broken: tuple[str, str], joined: str) -> None:
    assert joined_by("Of the apt-cache-dir, of aptitude and aujourd'hui much is told.", broken) == joined


@pytest.mark.parametrize(
    ("broken", "joined"),
    [
        (("all of it --", "install it"), "all of it --install it"),
        (("the park ?", "name(mill)"), "the park ?name(mill)"),
        (("the mill =", "the house"), "the mill = the house"),
        (("at fs/mills/", "old_ones.txt"), "at fs/mills/old_ones.txt"),
        (("the folder mills/", "and hills"), "the folder mills/ and hills"),
        (("of dev-2026-", "45 and 46"), "of dev-2026-45 and 46"),
        (("the line -0-", "40 of it"), "the line -0- 40 of it"),
        (("the mill .", "En now is"), "the mill . En now is"),
        (("the signs }", "The mill is"), "the signs } The mill is"),
        (("the sum (", "40 of it"), "the sum ( 40 of it"),
        (("the terms (", "all of it"), "the terms (all of it"),
    ],
)
def test_a_sign_at_the_end_of_a_line_is_of_the_word_that_it_begins(broken: tuple[str, str], joined: str) -> None:
    """What the document writes elsewhere decides."""
    known = "Of the terms ?any and ?all (and .all }all) there is more = much more (40) to tell."
    assert joined_by(known, broken) == joined


def test_two_hyphens_are_a_dash_where_the_document_has_them_apart() -> None:
    page = lines(["The keeper of the mill has told us of all of them --", "rye is dear -- in the spring."])
    assert parts(page) == ("<p>The keeper of the mill has told us of all of them -- rye is dear -- in the spring.</p>",)


@pytest.mark.parametrize(
    ("operators", "text"),
    [
        ("[(M)-250(I)-250(L)-250(L)-250(S)-900(A)-250(N)-250(D)] TJ", "MILLS AND"),
        ("[(M)-250(i)-250(l)-250(l)-250(s)-900(a)-250(n)-250(d)] TJ", "Mills and"),
        ("[(M)-250(I)-250(L)-250(L)-250(E)-250(R)] TJ", "MILLER"),
        ("(C H A P T E R) Tj", "CHAPTER"),
        ("(A B C D E F G) Tj", "A B C D E F G"),
        ("(a b I c B d) Tj", "a b I c B d"),
        ("(F B B B F) Tj", "F B B B F"),
        ("(a b c d \\344 e f g) Tj", "a b c d ä e f g"),
        ("[(M)-600(I)-600(L)-600(L)-600(E)-600(R)] TJ", "M I L L E R"),
    ],
)
def test_letters_of_a_word_that_are_set_apart_are_one_word(operators: str, text: str) -> None:
    page = [f"BT /R 10 Tf 50 700 Td {operators} ET", *lines(FULL, y=200)]
    assert parts(page)[0].split("\n")[0] == f"<p>{text}</p>"


def test_numbers_in_words_keep_their_hyphens() -> None:
    texts = [
        "The lid is taken off the pot after a time of some twenty-",
        "five minutes, and salt is strewn into the boiling wa-",
        "ter. The water boils.",
    ]
    assert "twenty-five minutes, and salt is strewn into the boiling water." in parts(lines(texts))[0]


def test_a_paragraph_belongs_to_the_page_where_it_begins() -> None:
    texts = [FIRST[0], "fed by snow", "until the end of May."]
    first, second = parts(lines(texts[:2]), [Drawn(50, 100, texts[2]), Drawn(50, 200, "Another one.")])
    assert (first, second) == (f"<p>{' '.join(texts)}</p>", "<p>Another one.</p>")


def test_heads_feet_and_numbers_of_pages_are_cut() -> None:
    texts = ["Water is high.", "Mills stand still.", "Snow is late.", "Hay is dear.", "Rain came."]
    pages = [
        [Drawn(50, 30, f"Chapter {at} of the report"), *lines([text]), Drawn(290, 780, str(at))]
        for at, text in enumerate(texts, 4)
    ]
    assert parts(*pages) == tuple(f"<p>{text}</p>" for text in texts)


def test_sentences_at_the_same_place_of_pages_are_no_heads() -> None:
    """A sentence that varies in a number is text; one that is the same on each page is a head."""
    texts = [f"Page {at} tells of the year {1000 + at} in which the town had {7 * at} boats." for at in range(4, 9)]
    assert parts(*(lines([text], y=40) for text in texts)) == tuple(f"<p>{text}</p>" for text in texts)
    notice = "No part of this book may be copied without leave of the town."
    pages = [[Drawn(50, 40, notice), Drawn(50, 300, f"Mills {text}")] for text in "abcde"]
    assert parts(*pages) == tuple(f"<p>Mills {text}</p>" for text in "abcde")


def test_lists_are_items() -> None:
    page = [
        *lines(["\u2022 Bread and butter, which are bought at the mill on each", "\u2022 Milk"], x=60),
        *lines(["1. First", "2. Second"], y=160),
    ]
    page[1:1] = [Drawn(70, 112, "Monday")]
    page[2] = page[2]._replace(y=124)
    bullets = "<ul>\n<li>Bread and butter, which are bought at the mill on each Monday</li>\n<li>Milk</li>\n</ul>\n"
    assert parts(page) == (bullets + "<p>1. First</p>\n<p>2. Second</p>",)


@pytest.mark.parametrize("label", ["1.", "a.", "(4)", "iv)", "J."])
def test_a_label_that_the_page_shows_is_text(label: str) -> None:
    """What has a number is never numbered again."""
    assert parts([*lines(FULL), Drawn(50, 180, f"{label} Smith wrote to us")]) == (
        f"<p>{' '.join(FULL)}</p>\n<p>{label} Smith wrote to us</p>",
    )


@pytest.mark.parametrize("words", ["J. Smith wrote of it", "3. April, when hay is", "b. Avoid the mud"])
def test_a_sentence_goes_on_with_what_looks_like_a_label(words: str) -> None:
    texts = [FIRST[0], "fed by snow until the end of May, when it was told to", f"{words} in the town."]
    assert parts(lines(texts)) == (f"<p>{' '.join(texts)}</p>",)


def test_code_keeps_its_lines() -> None:
    code = [Drawn(50, 150, "def f(x):", font="M"), Drawn(74, 162, "return <x>", font="M")]
    assert (
        parts([*lines(FULL), *code, *lines(FULL, y=190)])[0]
        .split("</p>")[1]
        .startswith("\n<pre>def f(x):\n    return &lt;x&gt;</pre>")
    )


ROWS = [["mill", "height", "stones"], ["Upper", "12.5", "two"], ["Lower", "7", "three"], ["Old", "9", "one"]]


def cells(y: float = 100, lead: float = 20) -> list[Drawn]:
    return [
        Drawn(x, y + at * lead, text)
        for at, row in enumerate(ROWS)
        for x, text in zip((60, 200, 300), row, strict=True)
    ]


TABLE = "<table>" + "".join("<tr>" + "".join(f"<td>{one}</td>" for one in row) + "</tr>" for row in ROWS) + "</table>"


def test_what_stands_in_columns_is_a_table() -> None:
    assert parts(cells()) == (TABLE,)


def test_what_stands_in_a_grid_is_a_table_with_cells_of_many_lines() -> None:
    grid = rules([50, 180, 280, 400], [85, 105, 125, 145, 190])
    page = [*grid, *cells(), Drawn(60, 172, "and closed"), *lines(FULL, y=240)]
    assert parts(page) == (TABLE.replace("Old", "Old and closed") + f"\n<p>{' '.join(FULL)}</p>",)


def test_the_head_of_a_table_is_not_repeated_on_its_next_pages() -> None:
    head, *rows = TABLE.removeprefix("<table>").removesuffix("</table>").replace("</tr>", "</tr>\n").split()
    assert parts(cells(300), cells(300), cells(300)) == (TABLE, *[f"<table>{''.join(rows)}</table>"] * 2)
    assert head == "<tr><td>mill</td><td>height</td><td>stones</td></tr>"


@pytest.mark.parametrize("between", [[], [Drawn(90, 250, "A mill, seen from the river", 8)], cells(210)])
def test_a_paragraph_goes_on_below_a_figure(between: list[Drawn]) -> None:
    rest = ["stand still for most of the summer, and the wheels", "of all of them are mended then."]
    whole = f"<p>{' '.join([*FULL[:3], *rest])}</p>"
    assert whole in parts([*lines(FULL[:3]), *between, *lines(rest, y=320)])[0]
    first, second = parts(lines(FULL[:3], y=700), [*between, *lines(rest, y=320)])
    assert first == whole
    assert ("mended" in second, bool(second)) == (False, bool(between))
    ended = [*FULL[:2], "highest. In a dry year it falls by half a meter in it."]
    assert "<p>stand still" in parts([*lines(ended), *between, *lines(rest, y=320)])[0]


def test_text_is_escaped() -> None:
    assert parts(lines(["a < b & c > d"])) == ("<p>a &lt; b &amp; c &gt; d</p>",)


def test_a_page_that_stands_on_its_side_is_read() -> None:
    turned = [f"BT /R 10 Tf 0 1 -1 0 {100 + 12 * at} 50 Tm ({text}) Tj ET" for at, text in enumerate(FULL)]
    assert parts(turned) == (f"<p>{' '.join(FULL)}</p>",)


def tagged(*pages: list[tuple[str, str] | tuple[str, str, int, int]]) -> bytes:
    """Return a tagged PDF; each page has the roles and texts of its elements, and where they stand from below."""
    drawn, numbers, tree = [], [], []
    objects: dict[int, bytes] = {}
    for number, page in enumerate(pages):
        drawn.append(
            [
                f"/{role} <</MCID {at}>> BDC BT /{'M' if role == 'Code' else 'R'} 10 Tf {x} {y} Td ({text}) Tj ET EMC"
                for at, (role, text, x, y) in enumerate(
                    (*one, 50, 700 - 14 * at) if len(one) == 2 else one for at, one in enumerate(page)
                )
            ]
        )
        first = 1010 + len(tree)
        for at, (role, *_) in enumerate(page):
            entry = f"<</Type/StructElem/S/{role}/P 1001 0 R/Pg {10 + 2 * number} 0 R/K {at}>>"
            objects[first + at] = entry.encode()
            tree.append(f"{first + at} 0 R")
        numbers.append(f"{number}[{' '.join(tree[first - 1010 :])}]")
    objects[1000] = f"<</Type/StructTreeRoot/K 1001 0 R/ParentTree<</Nums[{''.join(numbers)}]>>>>".encode()
    objects[1001] = f"<</Type/StructElem/S/Document/P 1000 0 R/K[{' '.join(tree)}]>>".encode()
    return pdf(*drawn, catalog="/StructTreeRoot 1000 0 R/MarkInfo<</Marked true>>", objects=objects)


def test_an_item_with_a_tag_goes_on_on_the_next_page() -> None:
    """Of a list with labels, what has none is the rest of an item; where no item has one, each is its own."""
    body = tagged([("LI", "4. Ask."), ("LI", "5. Give the path of its")], [("LI", "file at once.")])
    assert read(body).parts == ("<p>4. Ask.</p>\n<p>5. Give the path of its file at once.</p>", "")
    assert read(tagged([("LI", "milk")], [("LI", "bread")])).parts[1] == "<ul>\n<li>bread</li>\n</ul>"


Halves = tuple[str, str]
"""The text that an element has on the first page, and on the second."""


def over_pages(*rows: Halves | list[Halves]) -> bytes:
    """Return a tagged PDF of two pages: items of a list, or rows of cells of a table."""
    drawn: list[list[str]] = [[], []]
    parents: list[list[str]] = [[], []]
    objects: dict[int, bytes] = {}

    def element(role: str, parent: int, kids: str, number: int) -> str:
        objects[number] = f"<</Type/StructElem/S/{role}/P {parent} 0 R/K[{kids}]>>".encode()
        return f"{number} 0 R"

    def filled(role: str, texts: Halves, number: int, parent: int, x: int) -> str:
        kids = ""
        for page, text in enumerate(texts):
            if text:
                mark = len(drawn[page])
                y = 700 - 14 * int(number / 100)
                drawn[page].append(f"/{role} <</MCID {mark}>> BDC BT /R 10 Tf {x} {y} Td ({text}) Tj ET EMC")
                parents[page].append(f"{number} 0 R")
                kids += f"<</Type/MCR/Pg {10 + 2 * page} 0 R/MCID {mark}>>"
        return element(role, parent, kids, number)

    tops = []
    for at, row in enumerate(rows):
        number = 1100 + 100 * at
        if isinstance(row, tuple):
            tops.append(filled("LI", row, number, 1001, 50))
        else:
            cells = (filled("TD", one, number + 1 + x, number, 50 + 100 * x) for x, one in enumerate(row))
            tops.append(element("TR", 1001, " ".join(cells), number))
    numbers = "".join(f"{page}[{' '.join(found)}]" for page, found in enumerate(parents))
    objects[1000] = f"<</Type/StructTreeRoot/K 1001 0 R/ParentTree<</Nums[{numbers}]>>>>".encode()
    element("L" if isinstance(rows[0], tuple) else "Table", 1000, " ".join(tops), 1001)
    return pdf(*drawn, catalog="/StructTreeRoot 1000 0 R/MarkInfo<</Marked true>>", objects=objects)


def test_declared_cells_keep_their_columns_and_go_on_where_their_elements_do() -> None:
    """A head stands on both pages; a cell without text is no rest of a row."""
    head = [("mill", "mill"), ("stones", "stones")]
    rows = [[("Upper", ""), ("two of", "granite")], [("", ""), ("", "three")], [("", "Old"), ("", "one")]]
    first, second = (
        "<table><tr><td>mill</td><td>stones</td></tr><tr><td>Upper</td><td>two of{}</td></tr></table>",
        ("<table>{}<tr><td></td><td>three</td></tr><tr><td>Old</td><td>one</td></tr></table>"),
    )
    assert read(over_pages(head, *rows)).parts == (first.format(" granite"), second.format(""))
    rows[0] = [("Upper", ""), ("two of", "")]
    assert read(over_pages(head, *rows)).parts == (first.format(""), second.format(""))


def test_an_item_goes_on_where_its_element_does() -> None:
    """What is declared needs no label, and no sentence that goes on."""
    body = over_pages(("Milk.", ""), ("Bread of rye.", "It is bought at the mill."), ("", "Salt."))
    assert read(body).parts == (
        "<ul>\n<li>Milk.</li>\n<li>Bread of rye. It is bought at the mill.</li>\n</ul>",
        "<ul>\n<li>Salt.</li>\n</ul>",
    )


def test_an_item_whose_number_is_all_that_a_page_has_of_it_is_whole() -> None:
    body = over_pages(("1. Milk.", ""), ("2.", "Bread."), ("", "3."))
    assert read(body).parts == ("<p>1. Milk.</p>\n<p>2. Bread.</p>", "<p>3.</p>")


def test_declared_code_within_a_line_is_of_the_text_around_it() -> None:
    """Only code that has its lines to itself is a block."""
    body = tagged(
        [
            ("H1", "Escapes"),
            ("P", "All of them are short.", 50, 680),
            ("Span", "They begin with", 50, 650),
            ("Code", "&#", 125, 650),
            ("Span", "and end with", 142, 650),
            ("Code", ";", 203, 650),
            ("Span", ".", 209, 650),
            ("Code", "a: 1", 50, 620),
            ("Code", "|", 80, 620),
            ("Code", "b: 2", 50, 608),
            ("P", "What follows is no code, and says so in a sentence of its own.", 50, 580),
        ]
    )
    (part,) = read(body).parts
    assert part.split("\n") == [
        "<h1>Escapes</h1>",
        "<p>All of them are short.</p>",
        "<p>They begin with &amp;# and end with ;.</p>",
        "<pre>a: 1 |</pre>",
        "<pre>b: 2</pre>",
        "<p>What follows is no code, and says so in a sentence of its own.</p>",
    ]


def test_words_that_stand_on_their_sides_are_apart_where_there_is_white_between_them() -> None:
    """Each word, and each blank, is drawn by itself."""
    words, y = [], 50.0
    for word, width in (("mills", 21.66), ("and", 16.68), ("hills", 18.9), ("till", 10.0)):
        words.append(f"BT /R 10 Tf 0 1 -1 0 100 {y} Tm ({word}) Tj ET")
        y += width + 2.5
    assert parts([*lines(FULL, x=200), *words])[0].endswith("<p>mills and hills till</p>")


def test_a_raised_digit_is_of_its_word() -> None:
    page = [Drawn(50, 100, "It covers 4 km"), Drawn(112.3, 96.5, "2", 7), Drawn(116.2, 100, ". It is fed by snow.")]
    assert parts(page) == ("<p>It covers 4 km2. It is fed by snow.</p>",)


def test_the_mark_of_a_footnote_is_apart_from_its_text() -> None:
    assert parts([Drawn(50, 96.5, "1", 7), Drawn(54, 100, "If it is dry.")]) == ("<p>1 If it is dry.</p>",)


def test_tags_decide_what_is_what() -> None:
    """Cells, items and headings of a tagged file need no rules, bullets or sizes."""
    page = [("H2", "Mills"), ("P", "Three mills stand here."), ("LI", "The upper one"), ("LI", "The lower one")]
    assert read(tagged(page)).parts == (
        "<h2>Mills</h2>\n<p>Three mills stand here.</p>\n<ul>\n<li>The upper one</li>\n<li>The lower one</li>\n</ul>",
    )
