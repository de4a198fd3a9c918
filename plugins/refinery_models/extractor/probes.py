"""A few written pages, by whose features a model's card says how pages were read when it was trained."""

import hashlib

import numpy as np

from pipeline_tasks.text.blocks.blocks import read_blocks
from pipeline_tasks.text.blocks.coupling import relations
from pipeline_tasks.text.blocks.features import block_features, shown_blocks
from pipeline_tasks.text.blocks.labels import label_blocks

_LONG = "The river rises in the hills above the old town, and it turns to the south where the railway crosses it."
_WIDE = "この川は町の上の丘から流れ出し、鉄道が渡るところで南に曲がります。「水は冷たいですか?」と彼は尋ねました。"
_LINKS = "".join(f"<li><a href='/{name}'>{name}</a></li>" for name in ("Home", "Maps", "News", "Shop"))
_STATED = ("Article", "Product", "Offer", "QAPage", "WebSite", "BreadcrumbList", "Person")
_ARTICLE = f"""<title>The river and its town</title><meta property="og:type" content="article">
<meta name="description" content="{_LONG[:60]}">
<script type="application/ld+json">[{", ".join(f'{{"@type": "{name}"}}' for name in _STATED)}]</script>
<header><nav><ul>{_LINKS}</ul></nav></header>
<main><article><h1>The river and its town</h1><address>Ann Lee, <time>4 May 1987, 12:30</time></address><p>{_LONG}</p>
<p hidden>{_LONG}</p><h2>Its bridges:</h2><p><b>Three</b> of <a href='#a'>them</a> are <em>old</em>; {_LONG} Why?</p>
<blockquote><p>{_LONG}</p></blockquote><figure><img src=a><figcaption>The bridge</figcaption></figure>
<pre><code>def cross(river):\n    return river.bridge</code></pre><ol start=3><li>One<li>Two: {_LONG}</ol>
<table><tr><th>Bridge<th>Built<tr><td>North<td>1850<tr><td>South<td>1913</table><p>{_LONG.replace("river", "brook")}</p>
</article></main><aside><h3>Read on</h3><ul>{_LINKS}</ul></aside><footer><p>© 2026 · All rights reserved</p></footer>"""
_ITEM = """<section><div><h3><a href='/boat-{0}'>Boat {0}</a></h3><p>$ {0}9.50</p><p>{1}</p></div>
<button>Buy</button></section>"""
_SHOP = f"""<title>Boats | Shop</title><dialog open><p>We use cookies.</p><button>Accept</button></dialog><div>
<h1>Boats</h1><form><label>Sort by</label><input></form>
{"".join(_ITEM.format(n, _LONG[: 30 + 9 * n]) for n in range(1, 6))}</div>
<details><summary>Terms</summary><dl><dt>Price<dd>{_LONG}</dl></details><footer><ul>{_LINKS}</ul></footer>"""
_POST = "<div><div><a href='/u'>user {0}</a> | 2026-01-0{0}</div><div>{1}<br><br>{2}</div></div>"
_THREAD = "<h1>川</h1>" + "".join(_POST.format(nth, text, _LONG) for nth, text in enumerate((_LONG, _WIDE, 2 * _LONG)))
_LENGTHS = "".join(f"<p>{' '.join(_LONG.split()[:count])}.</p>" for count in range(1, 16))
_DEEP = 7 * f"<div><h2>Turn <a href=/on>on</a></h2><p>{_LONG}</p>"
PAGES = (_ARTICLE, _SHOP, _THREAD + _LENGTHS, f"<title>Turn on</title><p>Scripts off<noscript>{_DEEP}</noscript>")


def reading_digest() -> str:
    """Return the digest of what a model learns from these pages: other features or labels give another one."""
    hashed = hashlib.sha256()
    gold = np.frombuffer(_LONG.encode(), np.uint8)
    for text in PAGES:
        page = np.frombuffer(text.encode(), np.uint8)
        blocks = read_blocks(page)
        labels = label_blocks(blocks.text, blocks.starts, blocks.ends, gold)
        shown = shown_blocks(blocks)
        related = relations(blocks, shown)
        for values in (block_features(blocks, page), shown, related, blocks.words.astype(np.int64), labels):
            hashed.update(np.ascontiguousarray(values).data)
    return hashed.hexdigest()
