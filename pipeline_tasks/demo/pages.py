"""Dresses text up as web pages: navigation, sidebars, scripts, footers, and the usual rubbish."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

_MENUS = (
    ("Home", "Guides", "Reference", "Releases", "Community", "Search"),
    ("Start", "Documentation", "Blog", "Pricing", "Sign in"),
    ("Overview", "Tutorials", "API", "Changelog", "Support", "Contact", "About"),
    ("News", "Topics", "Archive", "Authors", "Newsletter"),
)
_TEASERS = (
    "Ten ways to speed up your build", "What changed in the last release", "Why we moved the scheduler",
    "An introduction to columns", "Reading logs without tears", "The annual survey is open", "Meet the maintainers",
    "How to report a bug", "Upgrading in one afternoon", "Frequently asked questions", "Glossary of terms",
    "Working with time zones", "Our code of conduct", "Designing for failure", "A short history of the project",
)  # fmt: skip
_SCRIPT = (
    "window.dataLayer=window.dataLayer||[];function gtag(){{dataLayer.push(arguments);}}gtag('js',new Date());"
    "gtag('config','DEMO-{number}',{{'page_path':'/{number}','anonymize_ip':true}});"
    "document.addEventListener('click',function(e){{if(e.target.matches('.share')){{e.preventDefault();}}}});"
)
_STYLE = (
    "body{margin:0;font:16px/1.6 sans-serif}nav ul{display:flex;list-style:none}aside{float:right;width:18rem}"
    ".cookie{position:fixed;bottom:0;background:#222;color:#fff}footer{border-top:1px solid #ccc;font-size:.8rem}"
)
_COOKIES = "We use cookies to improve your experience. By continuing you accept our policy."


@dataclass(frozen=True, slots=True)
class Article:
    """A text worth keeping: the words that an extractor should find, apart from the chrome around them."""

    title: str
    paragraphs: tuple[str, ...]
    language: str = "en"
    code: str = ""

    @property
    def words(self) -> list[str]:
        """Return the lower-cased words of title and paragraphs, in order."""
        return " ".join((self.title, *self.paragraphs)).lower().split()


def article(content: Article, host: str, rng: Random) -> str:
    """Return the page of `content`; the chrome follows `host` and chance, the content does not."""
    style = sum(host.encode()) % len(_MENUS)
    inner = "\n".join(f"<p>{html.escape(text, quote=False)}</p>" for text in content.paragraphs)
    if content.code:
        inner += f"\n<pre><code>{html.escape(content.code)}</code></pre>"
    inner = f"<h1>{html.escape(content.title)}</h1>\n{inner}"
    body = (
        f"<main><article>{inner}</article></main>",
        f'<div id="content" class="post-body" role="main">{inner}</div>',
        f'<main id="main" class="content">{inner}</main>',
        f'<div class="wrapper"><article class="entry-content">{inner}</article></div>',
    )[style]
    return _page(content.title, content.language, body, host, rng)


def _page(title: str, language: str, body: str, host: str, rng: Random) -> str:
    number = rng.randrange(10_000)
    teasers = rng.sample(_TEASERS, 6)
    return f"""<!DOCTYPE html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<title>{html.escape(title)} - {host}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta property="og:title" content="{html.escape(title)}">
<link rel="stylesheet" href="/static/{number}.css"><style>{_STYLE}</style>
<script>{_SCRIPT.format(number=number)}</script>
</head>
<body>
<header class="site-header"><a class="logo" href="/">{host}</a>{_menu(host)}</header>
<div class="cookie" role="dialog">{_COOKIES} <button>Accept</button> <a href="/privacy">Privacy</a></div>
{body}
<aside class="sidebar"><h3>Most read</h3>{_links(teasers[:3])}<h3>Related</h3>{_links(teasers[3:])}
<form action="/search"><input name="q" placeholder="Search"><button>Go</button></form></aside>
<footer class="site-footer">{_menu(host)}<p>Copyright 2026 {host}. All rights reserved.</p>
<a class="share" href="#">Share</a> <a class="share" href="#">Print</a></footer>
<script async src="/static/app.{number}.js"></script>
</body>
</html>
"""


def _menu(host: str) -> str:
    names = _MENUS[sum(host.encode()) % len(_MENUS)]
    return "<nav><ul>" + "".join(f'<li><a href="/{name.lower()}">{name}</a></li>' for name in names) + "</ul></nav>"


def _links(names: Sequence[str]) -> str:
    return (
        "<ul>" + "".join(f'<li><a href="/{name.lower().replace(" ", "-")}">{name}</a></li>' for name in names) + "</ul>"
    )


def boilerplate(host: str, rng: Random) -> str:
    """Return a page with nothing to read: a login, a domain for sale, a list of links, an empty search."""
    kind = rng.randrange(4)
    body = (
        '<main><form action="/login"><label>User<input></label><label>Password<input></label></form></main>',
        f"<main><h1>{host}</h1><p>This domain is for sale.</p></main>",
        f"<main>{_links(rng.sample(_TEASERS, 12))}</main>",
        "<main><h1>Search</h1><p>0 results</p></main>",
    )[kind]
    return _page(("Sign in", "For sale", "Index", "Search")[kind], "en", body, host, rng)


_STUFFING = (
    ("cheap", "watches", "online", "best", "price", "buy", "discount", "luxury", "replica", "sale"),
    ("loan", "fast", "cash", "approved", "today", "credit", "bad", "money", "apply", "now"),
    ("casino", "bonus", "free", "spins", "win", "jackpot", "slots", "play", "deposit", "poker"),
)


def spam(host: str, rng: Random) -> str:
    """Return a page stuffed with one set of keywords, the same phrases over and over."""
    words = rng.choice(_STUFFING)
    phrases = [" ".join(rng.sample(words, 4)) for _ in range(4)]
    lines = [" ".join(rng.choice(phrases) for _ in range(12)) for _ in range(10)]
    body = (
        "<main><article><h1>" + phrases[0] + "</h1>" + "".join(f"<p>{line}</p>" for line in lines) + "</article></main>"
    )
    return _page(phrases[0], "en", body, host, rng)


def listing(code: str, host: str, rng: Random) -> str:
    """Return a page that is nothing but source code."""
    body = f"<main><article><pre><code>{html.escape(code)}</code></pre></article></main>"
    return _page("Source", "en", body, host, rng)


def nested(content: Article, depth: int) -> str:
    """Return a page whose text is `depth` elements deep."""
    inner = "".join(f"<p>{html.escape(text)}</p>" for text in content.paragraphs)
    return "<!DOCTYPE html><html><body>" + "<div>" * depth + inner + "</div>" * depth + "</body></html>"
