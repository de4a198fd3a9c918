"""Writes pages whose blocks are known: formulas, boxed notes, descriptions of functions, code, tables and terms.

The prose is ours, in ten languages (`block_pages.txt`). The markup is that of the programs that write such pages: it is
taken from their documentation, and not from what any extractor reads. Each page has a menu, a footer and paragraphs.
"""

import re
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

CONTENTS = Path(__file__).with_name("block_pages.txt")
FORMULAS = 4  # on a page


class Prose(NamedTuple):
    """What a page is made of, in one language; the sentences of each page are in an order of its own."""

    language: str
    title: str
    menu: list[str]
    footer: str
    note: str
    columns: list[str]
    sentences: list[str]

    def of(self, page: int) -> "Prose":
        """Return the prose of a page by its number."""
        at = 3 * page % len(self.sentences)
        return self._replace(sentences=self.sentences[at:] + self.sentences[:at])

    def joined(self, *places: int) -> str:
        """Return sentences as one paragraph; Chinese and Japanese have no blanks between them."""
        return ("" if self.language in ("zh", "ja") else " ").join(self.sentences[place] for place in places)

    def paragraph(self, *places: int) -> str:
        """Return the markup of a paragraph."""
        return f"<p>{escape(self.joined(*places))}</p>"

    def words(self, place: int) -> str:
        """Return the beginning of a sentence, as a label has it."""
        sentence = self.sentences[place]
        return sentence[:6] if self.language in ("zh", "ja") else " ".join(sentence.split()[:3])


class Between(NamedTuple):
    """A formula, and the texts right before and after it."""

    before: str
    tex: str
    after: str


Wanted = TypeVar("Wanted")


class Page(NamedTuple, Generic[Wanted]):
    """A page, its notation or markup, and what its text is to have."""

    kind: str
    html: str
    wanted: list[Wanted]


Table = list[list[str]]


def proses(contents: Path = CONTENTS) -> list[Prose]:
    """Return the prose of each language."""
    found = []
    for part in contents.read_text(encoding="utf-8").split("=== ")[1:]:
        head, *sentences = part.strip().split("\n")
        (language, title), menu, footer, note, columns = (head.split(" ", 1), *head.split(" | ")[1:])
        title = title.partition(" | ")[0]
        found.append(Prose(language, title, menu.split(" · "), footer, note, columns.split(" · "), sentences))
    return found


def framed(prose: Prose, number: int, inner: str) -> str:
    """Return a whole page around its content: an article of HTML 5, or a manual of plain `div`s."""
    links = "".join(f'<li><a href="/{at}">{escape(name)}</a></li>' for at, name in enumerate(prose.menu))
    direction = ' dir="rtl"' if prose.language == "ar" else ""
    title, footer = escape(prose.title), escape(prose.footer)
    if number % 2:
        head = f'<meta property="og:type" content="article"><meta property="og:title" content="{title}">'
        body = (
            f'<header class="site-header"><a class="logo" href="/">{escape(prose.menu[0])}</a><nav><ul>{links}</ul>'
            f'</nav></header><main id="main"><article class="post"><h1>{title}</h1>{inner}</article></main>'
            f'<footer class="site-footer"><ul>{links}</ul><p>{footer}</p></footer>'
        )
    else:
        head = '<link rel="stylesheet" href="/theme.css">'
        body = (
            f'<div class="top"><div class="menu"><ul>{links}</ul></div></div><div class="document"><div class="body">'
            f'<h1>{title}</h1>{inner}</div></div><div class="bottom"><p>{footer}</p></div>'
        )
    return (
        f'<!DOCTYPE html>\n<html lang="{prose.language}"{direction}><head><meta charset="utf-8"><title>{title}</title>'
        f"{head}</head>\n<body>\n{body}\n</body></html>\n"
    )


# --- Formulas ---------------------------------------------------------------------------------------------------


class Math(NamedTuple):
    """A formula as TeX and as presentation MathML."""

    tex: str
    mathml: str


def signs(text: str) -> Math:
    """Return a row of letters, numbers and operators, parted by blanks; names of TeX have their sign after `=`."""
    leaves = [part.partition("=") if part[0] == "\\" else (part, "", part) for part in text.split()]
    tags = ["mi" if sign.isalpha() else "mn" if sign[0].isdigit() else "mo" for _, _, sign in leaves]
    mathml = "".join(f"<{tag}>{escape(sign)}</{tag}>" for (_, _, sign), tag in zip(leaves, tags, strict=True))
    return Math(" ".join(name for name, _, _ in leaves), mathml if len(leaves) == 1 else f"<mrow>{mathml}</mrow>")


def row(*parts: Math) -> Math:
    """Return parts in a row."""
    return Math(" ".join(part.tex for part in parts), f"<mrow>{''.join(part.mathml for part in parts)}</mrow>")


def part(template: str, tag: str, *parts: Math) -> Math:
    """Return parts in a template of TeX, and in an element of MathML."""
    mathml = "".join(part.mathml for part in parts)
    return Math(template % tuple(part.tex for part in parts), f"<{tag}>{mathml}</{tag}>")


def over(above: Math, below: Math) -> Math:
    """Return a fraction."""
    return part(r"\frac{%s}{%s}", "mfrac", above, below)


def power(base: str, exponent: str) -> Math:
    """Return a base with a superscript."""
    return part("%s^{%s}", "msup", signs(base), signs(exponent))


def ranged(sign: str, low: str, high: str) -> Math:
    """Return a sum or an integral with its bounds."""
    tag = "munderover" if "sum" in sign else "msubsup"
    return part("%s_{%s}^{%s}", tag, signs(sign), signs(low), signs(high))


def below(base: str, index: str) -> Math:
    """Return a base with a subscript."""
    return part("%s_{%s}", "msub", signs(base), signs(index))


def root(inner: Math) -> Math:
    """Return a square root."""
    return part(r"\sqrt{%s}", "msqrt", inner)


MATHS = (
    row(
        signs("x ="),
        over(row(signs(r"- b \pm=±"), root(row(power("b", "2"), signs("- 4 a c")))), signs("2 a")),
    ),
    row(signs("E = m"), power("c", "2")),
    row(ranged(r"\sum=∑", "i = 1", "n"), signs("i ="), over(signs("n ( n + 1 )"), signs("2"))),
    row(ranged(r"\int=∫", "0", r"\infty=∞"), power("e", "- x"), signs("d x = 1")),
    row(power("a", "2"), signs("+"), power("b", "2"), signs("="), power("c", "2")),
    row(signs("m ="), over(signs("1"), signs("n")), ranged(r"\sum=∑", "i = 1", "n"), below("x", "i")),
    row(power(r"\omega=ω", "2"), signs("= E ("), power("x", "2"), signs(") -"), power(r"\mu=μ", "2")),
    row(below("T", "k"), signs(r"\leq=≤"), below("T", "0"), signs(r"+ \lambda=λ h")),
    row(power("e", r"i \pi=π"), signs("+ 1 = 0")),
    row(signs("P ( A | B ) ="), over(signs("P ( B | A ) P ( A )"), signs("P ( B )"))),
    row(signs("f ( x ) ="), over(signs("1"), root(signs(r"2 \pi=π"))), power("e", "- x")),
    row(root(row(power("x", "2"), signs("+"), power("y", "2"))), signs(r"\leq=≤ x + y")),
)

_BLOCK = ' display="block"'
_MATHML = 'xmlns="http://www.w3.org/1998/Math/MathML"'


def _annotated(math: Math) -> str:
    source = f'<annotation encoding="application/x-tex">{escape(math.tex)}</annotation>'
    return f"<semantics>{math.mathml}{source}</semantics>"


def _drawn(math: Math, start: str, end: str) -> str:
    """Return each sign of a formula in an element, as libraries draw it."""
    return "".join(f"{start}{sign}{end}" for sign in re.findall(r">([^<>]+)<", math.mathml))


def mathml(math: Math, *, displayed: bool) -> str:
    """Return MathML that a converter from LaTeX wrote, with its source."""
    return f'<math {_MATHML} display="{"block" if displayed else "inline"}">{_annotated(math)}</math>'


def bare_mathml(math: Math, *, displayed: bool) -> str:
    """Return MathML as an editor of formulas wrote it."""
    return f"<math {_MATHML}{_BLOCK if displayed else ''}>{math.mathml}</math>"


def katex(math: Math, *, displayed: bool) -> str:
    """Return what KaTeX 0.16 renders on a server, `htmlAndMathml`."""
    drawn = _drawn(math, '<span class="mord mathnormal">', "</span>")
    strut = '<span class="strut" style="height:0.8641em;vertical-align:-0.0833em;"></span>'
    inner = (
        f'<span class="katex"><span class="katex-mathml"><math {_MATHML}>{_annotated(math)}</math></span>'
        f'<span class="katex-html" aria-hidden="true"><span class="base">{strut}{drawn}</span></span></span>'
    )
    return f'<span class="katex-display">{inner}</span>' if displayed else inner


def mathjax_2(math: Math, *, displayed: bool) -> str:
    """Return what MathJax 2.7 leaves in a page, with its extension for screen readers."""
    mode = "; mode=display" if displayed else ""
    kind = "MathJax_Display" if displayed else ""
    drawn = _drawn(math, '<span class="mi" style="font-family: MathJax_Math-italic;">', "</span>")
    frame = (
        '<span class="MathJax" id="MathJax-Element-1-Frame" tabindex="0" role="presentation"><nobr aria-hidden="true">'
        f'<span class="math">{drawn}</span></nobr><span class="MJX_Assistive_MathML" role="presentation">'
        f"<math {_MATHML}>{math.mathml}</math>"
        "</span></span>"
    )
    shown = f'<div class="{kind}" style="text-align: center;">{frame}</div>' if displayed else frame
    return (
        f'<span class="MathJax_Preview" style="color: inherit;"></span>{shown}'
        f'<script type="math/tex{mode}" id="MathJax-Element-1">{math.tex}</script>'
    )


def mathjax_3(math: Math, *, displayed: bool) -> str:
    """Return what MathJax 3 (CHTML) leaves in a page: its font draws the signs, the MathML is for screen readers."""
    drawn = "".join(
        f'<mjx-mi class="mjx-i"><mjx-c class="mjx-c{ord(sign[0]):X} TEX-I"></mjx-c></mjx-mi>'
        for sign in re.findall(r">([^<>]+)<", math.mathml)
    )
    display, mode = (' display="true"', "block") if displayed else ("", "inline")
    return (
        f'<mjx-container class="MathJax CtxtMenu_Attached_0" jax="CHTML"{display} tabindex="0"><mjx-math '
        f'class="MJX-TEX" aria-hidden="true">{drawn}</mjx-math><mjx-assistive-mml unselectable="on" display="{mode}">'
        f"<math {_MATHML}>{math.mathml}</math></mjx-assistive-mml></mjx-container>"
    )


def wikipedia(math: Math, *, displayed: bool) -> str:
    """Return what MediaWiki's extension Math writes: hidden MathML, and an image."""
    tex = escape(f"{{\\displaystyle {math.tex}}}")
    mode = "display" if displayed else "inline"
    span = (
        f'<span class="mwe-math-element"><span class="mwe-math-mathml-{mode} mwe-math-mathml-a11y" '
        f'style="display: none;"><math {_MATHML} alttext="{tex}"><semantics>{math.mathml}'
        f'<annotation encoding="application/x-tex">{tex}</annotation></semantics></math></span>'
        '<img src="https://wikimedia.org/api/rest_v1/media/math/render/svg/0a1b2c" aria-hidden="true" '
        f'class="mwe-math-fallback-image-{mode}" style="vertical-align: -0.338ex" alt="{tex}"></span>'
    )
    return f"<dl><dd>{span}</dd></dl>" if displayed else span


def wordpress(math: Math, *, displayed: bool) -> str:
    """Return the image of WordPress' plugin for LaTeX."""
    image = f'<img src="https://s0.wp.com/latex.php?latex=0a1b&bg=ffffff" alt="{escape(math.tex)}" class="latex" />'
    return f'<p style="text-align:center;">{image}</p>' if displayed else image


def codecogs(math: Math, *, displayed: bool) -> str:
    """Return the image of an equation server."""
    image = f'<img src="https://latex.codecogs.com/svg.latex?0a1b" title="" alt="{escape(math.tex)}" border="0">'
    return f'<div align="center">{image}</div>' if displayed else image


def raw(math: Math, *, displayed: bool) -> str:
    r"""Return a formula that a script typesets when the page is open: TeX between `\(` and `\)`."""
    return f"<p>\\[{escape(math.tex)}\\]</p>" if displayed else f"\\({escape(math.tex)}\\)"


NOTATIONS: dict[str, tuple[Callable[..., str], ...]] = {
    "mathml": (mathml, bare_mathml),
    "katex": (katex,),
    "mathjax": (mathjax_2, mathjax_3),
    "wikipedia": (wikipedia,),
    "image": (wordpress, codecogs),
    "raw": (raw,),
}


def formula_pages() -> Iterator[Page[Between]]:
    """Yield ten pages of each notation, one per language; every second formula has its own line."""
    for writers in NOTATIONS.values():
        for number, prose in enumerate(proses()):
            write, said = writers[number % len(writers)], prose.of(number)
            inner, wanted = [said.paragraph(0, 1)], list[Between]()
            for place in range(FORMULAS):
                math = MATHS[(number + 3 * place) % len(MATHS)]
                before, after = said.sentences[2 + 2 * place][:-1], said.sentences[3 + 2 * place]
                written = write(math, displayed=bool(place % 2))
                wanted.append(Between(before, math.tex, after))
                start = f"<p>{escape(before)}:"
                inner.append(
                    f"{start}</p>\n{written}\n<p>{escape(after)}</p>"
                    if place % 2
                    else f"{start} {written}. {escape(after)}</p>"
                )
            inner.append(said.paragraph(10, 11))
            yield Page(write.__name__, framed(said, number, "\n".join(inner)), wanted)


# --- Boxes ------------------------------------------------------------------------------------------------------

NOTES = {
    "aside": "<aside><h4>{label}</h4>{inner}</aside>",
    "sidebar": '<div class="sidebar"><p class="sidebar-title">{label}</p>{inner}</div>',
    "note": '<div class="note"><h3>{label}</h3>{inner}</div>',
    "admonition": '<div class="admonition warning"><p class="admonition-title">{label}</p>{inner}</div>',
    "details": "<details><summary>{label}</summary>{inner}</details>",
}
MEMBERS = ("open(path, mode)", "read(count)", "seek(offset, whence)", "close()")


def note_pages() -> Iterator[Page[str]]:
    """Yield pages with two boxed notes between their paragraphs, in each markup and language."""
    for at, (kind, markup) in enumerate(NOTES.items()):
        for number, prose in enumerate(proses()):
            said = prose.of(number + at)
            first, second = (
                markup.format(label=escape(said.note), inner=said.paragraph(*places)) for places in ((12, 13), (10, 11))
            )
            inner = [said.paragraph(0, 1), said.paragraph(2, 3), first, said.paragraph(4, 5)]
            inner += [f"<h2>{escape(said.words(6))}</h2>", said.paragraph(6), second, said.paragraph(7, 8, 9)]
            yield Page(kind, framed(said, number, "\n".join(inner)), [said.joined(12, 13), said.joined(10, 11)])


def description_pages() -> Iterator[Page[str]]:
    """Yield references of functions, whose descriptions are in elements with the names that generators give them."""
    for number, prose in enumerate(proses()):
        said = prose.of(number)
        short = "".join(
            f'<tr><td><a href="#m{at}"><code>{member}</code></a></td><td><div class="shortcomment">'
            f"{escape(said.sentences[at])}</div></td></tr>"
            for at, member in enumerate(MEMBERS)
        )
        table = f'<table class="summary">{short}</table>'
        yield Page("shortcomment", framed(said, number, said.paragraph(12, 13) + table), said.sentences[:4])
        full = "".join(
            f'<div class="member" id="m{at}"><h3 class="signature"><code>{member}</code></h3>'
            f'<div class="comment">{said.paragraph(4 + 2 * at, 5 + 2 * at)}</div></div>'
            for at, member in enumerate(MEMBERS)
        )
        wanted = [said.joined(4 + 2 * at, 5 + 2 * at) for at in range(4)]
        yield Page("comment", framed(said, number + 1, said.paragraph(0, 1) + full), wanted)


# --- Code -------------------------------------------------------------------------------------------------------

CODES = (
    """def mean(lines, count):
    total = 0.0
    for line in lines:
        if line.value is not None:
            total += line.value
    return total / count if count else float("nan")""",
    """for (i = 0; i < n; i++) {
    if (wind[i] > limit && !seen[i]) {
        seen[i] = 1;
        count++;
    }
}""",
    """station:
  name: "north"
  sensors:
    - kind: rain
      every: 10
    - kind: wind
      every: 1""",
    """#!/bin/sh
while read -r day value; do
\tcase $value in
\t\t-*) echo "$day below zero" ;;
\tesac
done < log.txt""",
)
_TOKEN = re.compile(r"(&quot;.*?&quot;)|\b(def|for|if|in|is|not|while|do|done|case|esac|return|read)\b|(\d+(?:\.\d+)?)")


def _colored(code: str) -> str:
    """Return code whose words are in elements with the short classes of Pygments."""
    classes = ("s2", "k", "mi")
    return _TOKEN.sub(lambda m: f'<span class="{classes[(m.lastindex or 1) - 1]}">{m[0]}</span>', escape(code))


def _lines(code: str, template: str) -> str:
    return "".join(template.format(n=n, line=line) for n, line in enumerate(_colored(code).split("\n"), 1))


_LINE = '<span class="line" style="display:block">{line}</span>'
_ROW = (
    '<tr><td class="hljs-ln-numbers" data-line-number="{n}"></td><td class="hljs-ln-code" data-line-number="{n}">'
    "{line}</td></tr>"
)


def _numbered(code: str) -> str:
    numbers = "".join(f"{n}\n" for n, _ in enumerate(code.split("\n"), 1))
    return (
        '<div class="highlight"><table class="rouge-table"><tbody><tr><td class="rouge-gutter gl"><pre class="lineno">'
        f'{numbers}</pre></td><td class="rouge-code"><pre>{_colored(code)}\n</pre></td></tr></tbody></table></div>'
    )


CODE_MARKUP: dict[str, Callable[[str], str]] = {
    "pre": lambda code: f"<pre>{escape(code)}</pre>",
    "spans": lambda code: f'<div class="highlight"><pre><span></span><code>{_colored(code)}\n</code></pre></div>',
    "line per element": lambda code: f'<pre class="shiki"><code>{_lines(code, _LINE)}</code></pre>',
    "numbers beside": _numbered,
    "numbered rows": lambda code: (
        f'<pre><code class="hljs"><table class="hljs-ln"><tbody>{_lines(code, _ROW)}</tbody></table></code></pre>'
    ),
}


def code_pages() -> Iterator[Page[str]]:
    """Yield pages with two pieces of code, in each markup and language."""
    for at, (kind, markup) in enumerate(CODE_MARKUP.items()):
        for number, prose in enumerate(proses()):
            said, codes = prose.of(number + at), [CODES[(number + more) % len(CODES)] for more in (0, 1)]
            inner = [said.paragraph(0, 1), markup(codes[0]), said.paragraph(2, 3), said.paragraph(4, 5)]
            inner += [markup(codes[1]), said.paragraph(6, 7), said.paragraph(8, 9)]
            yield Page(kind, framed(said, number, "\n".join(inner)), codes)


# --- Tables -----------------------------------------------------------------------------------------------------


def _cells(rows: Table, tag: str = "td") -> str:
    return "".join(f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>" for cells in rows)


def _plain_table(head: list[str], rows: Table) -> str:
    return f"<table><thead>{_cells([head], 'th')}</thead><tbody>{_cells(rows)}</tbody></table>"


def table_pages() -> Iterator[Page[Table]]:
    """Yield pages with a table of data: plain, with a cell over several columns, and within a table for layout."""
    for number, prose in enumerate(proses()):
        said = prose.of(number)
        head = said.columns
        rows = [[said.words(at), f"{12 * at + number}.{at}", "km" if at % 2 else "°C"] for at in range(5)]
        text, more = said.paragraph(6, 7), said.paragraph(8, 9)
        around = f"{text}{{}}{more}{said.paragraph(10, 11)}"
        yield Page("plain", framed(said, number, around.format(_plain_table(head, rows))), [[head, *rows]])
        wide = f'<tr><th></th><th colspan="2">{escape(head[1])}</th></tr>'
        spanned = f"<table><thead>{wide}</thead><tbody>{_cells(rows)}</tbody></table>"
        yield Page("colspan", framed(said, number + 1, around.format(spanned)), [[["", head[1]], *rows]])
        menu = "".join(f'<a href="/{at}">{escape(name)}</a><br>' for at, name in enumerate(said.menu))
        nested = (
            f'<table width="100%" border="0"><tr><td width="150" valign="top">{menu}</td><td valign="top">'
            f"{around.format(_plain_table(head, rows))}</td></tr></table>"
        )
        yield Page("nested", framed(said, 0, nested), [[head, *rows]])


def term_pages() -> Iterator[Page[list[str]]]:
    """Yield pages with a list of terms and their descriptions."""
    for number, prose in enumerate(proses()):
        said = prose.of(number)
        pairs = [[said.words(at), said.joined(at + 5)] for at in range(4)]
        terms = "".join(f"<dt>{escape(term)}</dt><dd>{escape(meaning)}</dd>" for term, meaning in pairs)
        inner = f"{said.paragraph(10, 11)}<dl>{terms}</dl>{said.paragraph(12, 13)}{said.paragraph(9)}"
        yield Page("dl", framed(said, number, inner), pairs)
