"""Describes each block of a page by numbers of one byte: its text, its elements, its neighbors, its page.

No name of a class, id or attribute is read. Numbers are counts on a scale of sixteenths of an octave, or shares of 255.
Which features matter: docs/decisions/0095-a-model-reads-blocks.md.
"""

import re

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.ascii import GREATER, LESS, is_alphanumeric, is_letter, lower
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.blocks import measures as m
from pipeline_tasks.text.blocks.attributes import equals, read_attribute
from pipeline_tasks.text.blocks.blocks import Blocks
from pipeline_tasks.text.blocks.reading import (
    B_END,
    B_FLAGS,
    B_KIND,
    B_LEVEL,
    B_MARKER,
    B_NODE,
    B_START,
    CODE,
    HEADED,
    IS_HIDDEN,
    ITEMIZED,
    N_FIRST,
    N_LAST,
    N_PARENT,
    N_TAG,
    NO_MARKER,
    ROW,
)
from pipeline_tasks.text.blocks.tags import TAGS, name_key

_WITHIN = re.findall("[a-z_0-9]+", "nav header footer aside main article section form dialog figure button")
_ENCLOSING = 6  # elements around a block that are described
_SIZES = (3, 8, 20)  # blocks on each side of a window

_TEXT = re.findall(
    "[a-z_0-9]+",
    "words chars_per_word longest_word digits capitals signs stops commas colons bars lines sentences ends starts "
    "linked links coded strong emphasis is_title is_description years clocks",
)
_ELEMENT = re.findall("[a-z_0-9]+", "kind level marker tag tag_2 tag_3 depth last_in_parent only_in_parent")
_PLACE = re.findall(
    "[a-z_0-9]+",
    "nth share_of_blocks share_of_words words_before words_after after_h1 h1_words_before after_title in_half in_most "
    "before_half behind_half before_most behind_most in_best before_best behind_best distance_best copy earlier_copies "
    "since_heading heading_level heading_words section_words section_linked section_sentences",
)
_LIKE = re.findall(
    "[a-z_0-9]+",
    "like_path_blocks like_path_words like_path_linked like_path_sentences like_path_nth like_path_share "
    "siblings siblings_words siblings_linked siblings_sentences outer_siblings outer_siblings_words "
    "outer_siblings_linked siblings_share siblings_nth siblings_blocks outer_siblings_share outer_siblings_sentences "
    "outer_siblings_nth",
)
_PAGE = re.findall(
    "[a-z_0-9]+",
    "page_words page_blocks page_linked page_sentences page_long page_headings page_items page_rows page_code "
    "page_forms "
    "page_h1 page_articles page_paragraphs page_copies page_half_share page_best_share page_hidden page_prices "
    "page_years page_open_graph",
)
_STATED = {
    "article": "Article NewsArticle BlogPosting TechArticle Report ScholarlyArticle OpinionNewsArticle Blog",
    "product": "Product ProductGroup IndividualProduct",
    "offer": "Offer AggregateOffer",
    "thread": "DiscussionForumPosting QAPage Question Answer Comment",
    "site": "WebPage WebSite",
    "crumbs": "BreadcrumbList",
    "person": "Person",
}
"""Types of schema.org that pages state about themselves, by the features that count them."""
_OPEN_GRAPH = re.findall("[a-z.]+", "article product website blog profile book video.other og.product object")
_BRANCH = re.findall(
    "[a-z_0-9]+", "words linked sentences long blocks tag up down nth headings held_words held_linked side prices"
)
_HEADLINE = re.findall("[a-z_0-9]+", "side words blocks up long linked kind is_title")
_ENCLOSED = re.findall("[a-z_0-9]+", "words linked sentences long blocks tag")
_NEAR = re.findall("[a-z_0-9]+", "words linked sentences kind ends")
NAMES = (
    *_TEXT,
    *_ELEMENT,
    *(f"in_{name}" for name in _WITHIN),
    *_PLACE,
    *_LIKE,
    *_PAGE,
    *(f"page_stated_{name}" for name in _STATED),
    *(f"enclosing_{nth}_{name}" for nth in range(_ENCLOSING) for name in _ENCLOSED),
    *(f"{side}_{name}" for side in ("before", "behind") for name in _NEAR),
    *(f"window_{size}_{name}" for size in _SIZES for name in ("words", "linked", "sentences", "long")),
    *(f"{holder}_branch_{name}" for holder in ("half", "most") for name in _BRANCH),
    *(f"headline_{name}" for name in _HEADLINE),
)
FEATURES = len(NAMES)
_PLACES = {name: nth for nth, name in enumerate(NAMES)}
(
    _F_ELEMENT,
    _F_WITHIN,
    _F_PLACE,
    _F_LIKE,
    _F_PAGE,
    _F_ENCLOSED,
    _F_NEAR,
    _F_WINDOW,
    _F_BRANCH,
    _F_HEADLINE,
    _F_SIGNS,
    _F_STATED,
    _F_OPEN_GRAPH,
) = (
    _PLACES[name]
    for name in (
        "kind",
        "in_nav",
        "nth",
        "like_path_blocks",
        "page_words",
        "enclosing_0_words",
        "before_words",
        "window_3_words",
        "half_branch_words",
        "headline_side",
        "years",
        "page_stated_article",
        "page_open_graph",
    )
)

_WITHIN_BITS = np.zeros(256, np.int64)
for _nth, _name in enumerate(_WITHIN):
    _WITHIN_BITS[TAGS[_name]] = 1 << _nth
_WITHIN_COUNT = len(_WITHIN)
_FAR_WORDS, _FAR_BLOCKS = 2_000, 200
"""Distances beyond which none counts: of the marked pages few are longer, and what is far down in them are comments. By
them half of a novel was lost."""

_FORM, _ARTICLE = TAGS["form"], TAGS["article"]
LONG = 12
"""Words of a block that is long, if less than half of them are links."""

_STATED_KEYS = np.array([name_key(name.lower()) for names in _STATED.values() for name in names.split()], np.uint64)
_STATED_SLOTS = np.array([nth for nth, names in enumerate(_STATED.values()) for _ in names.split()], np.int64)
_OPEN_GRAPH_KEYS = np.array([name_key(name) for name in _OPEN_GRAPH], np.uint64)
_STATED_COUNT = len(_STATED)
_AT_TYPE, _SCHEMA, _OG_TYPE, _CONTENT, _META, _BODY, _DESCRIPTION = (
    np.frombuffer(word, np.uint8)
    for word in (b'@type"', b"schema.org/", b"og:type", b"content=", b"<meta", b"<body", b"description")
)
_NAME_KEY, _PROPERTY_KEY, _CONTENT_KEY = (np.uint64(name_key(name)) for name in ("name", "property", "content"))
_BASIS, _PRIME = np.uint64(name_key("")), np.uint64(0x100000001B3)
_SIGN, _T, _Y, _P, _S, _C, _H, _E, _O, _G, _COLON = (np.uint8(ord(letter)) for letter in "@typscheog:")
_STRIDE = 16
_TAG_SIZE = 300  # bytes of a tag in which a value is looked for

_SLOTS = 4  # tags of the children of an element that are told apart
_TITLE_WORDS = 40  # of a block that may be the title
_DESCRIPTION_WORDS = 120  # of a block that may be the description
_GROUPS = 1 << 12
_BRANCHES, _NEARS = len(_BRANCH), len(_NEAR)
_F_TITLE, _F_BEHIND_TITLE = _PLACES["is_title"], _PLACES["after_title"]
_F_DESCRIPTION = _PLACES["is_description"]


def block_features(blocks: Blocks, page: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the features of each block, by the columns `NAMES`; takes time linear in the blocks."""
    start, end = blocks.title
    features = np.zeros((len(blocks.table), FEATURES), np.uint8)
    if len(features):
        _describe(blocks.table, blocks.nodes, blocks.measures, blocks.text, page[max(start, 0) : max(end, 0)], features)
        _state(page, features)
        _describe_by_meta(blocks.table, blocks.measures, blocks.text, page, features)
    return features


def shown_blocks(blocks: Blocks) -> npt.NDArray[np.bool_]:
    """Return which blocks a page shows: all where more of its long text is hidden, as a script shows it then."""
    return np.asarray(_shown(blocks.table, blocks.measures))


@inlined
def _scaled(number):
    """Return a count on a scale of sixteenths of an octave, exact up to 15."""
    number = np.int64(number)
    if number < 16:
        return np.uint8(max(number, 0))
    octave, rest = 4, number
    while rest >= 32:
        rest >>= 1
        octave += 1
    return np.uint8(min(16 * (octave - 4) + rest, 255))


@inlined
def _share(part, whole):
    share = np.int64(255) * part // (whole + (whole == 0))
    return np.uint8(min(share, 255))


@compiled
def _shown(table, rows):
    shown = np.ones(len(table), np.bool_)
    long = np.zeros(2, np.int64)
    for block in range(len(table)):
        hidden = np.int64(table[block, B_FLAGS] & IS_HIDDEN != 0)
        shown[block] = not hidden
        if rows[block, m.WORDS] >= LONG and 2 * rows[block, m.LINKED] < rows[block, m.WORDS]:
            long[hidden] += rows[block, m.WORDS]
    if long[1] > long[0]:
        shown[:] = True
    return shown


@compiled
def _describe(table, nodes, rows, text, title, features):
    shown = _shown(table, rows)
    table = table.copy()
    for block in range(len(table)):
        if shown[block]:
            table[block, B_FLAGS] &= ~IS_HIDDEN
    signs = _signs(table, text, features)
    sums = _sums(rows, table, signs)
    paths = _paths(nodes)
    best = _best_run(rows, table)
    half, most = _holding(nodes, sums, 2, 1), _holding(nodes, sums, 5, 4)
    copies, earlier = _copies(rows)
    _texts(rows, features)
    _titles(table, rows, text, title, features)
    _elements(table, nodes, sums, features)
    _positions(table, nodes, rows, sums, best, half, most, copies, earlier, features)
    _likes(table, nodes, rows, paths, sums, features)
    _pages(table, nodes, rows, sums, best, half, copies, features)
    _neighbors(table, rows, sums, features)
    for nth, holder in enumerate((half, most)):
        _branches(table, nodes, sums, holder, features[:, _F_BRANCH + nth * _BRANCHES :])
    _headlines(table, nodes, rows, sums, features)


@compiled
def _signs(table, text, features):
    """Count prices, years and clock times of each block; return the first two."""
    signs = np.zeros((len(table), 2), np.int64)
    for block in range(len(table)):
        start, end = table[block, B_START], table[block, B_END]
        digits, first, clocks = 0, 0, 0
        for at in range(start, end):
            byte = text[at]
            if 48 <= byte <= 57:
                digits += 1
                first = 10 * first + byte - 48 if digits <= 2 else first
                continue
            signs[block, 1] += digits == 4 and first in (19, 20)
            clocks += byte == 58 and 0 < digits <= 2 and at + 1 < end and 48 <= text[at + 1] <= 57
            digits = first = 0
            size = _currency(text, at, end)
            if size and (
                _has_digit(text, at + size, min(at + size + 2, end)) or _has_digit(text, max(at - 2, start), at)
            ):
                signs[block, 0] += 1
        signs[block, 1] += digits == 4 and first in (19, 20)
        f = features[block, _F_SIGNS:]
        f[0], f[1] = _scaled(signs[block, 1]), _scaled(clocks)
    return signs


@inlined
def _currency(text, at, end):
    """Return the bytes of the sign of a currency that is here, 0 for none."""
    byte = text[at]
    if byte == 0x24:
        return 1
    if byte == 0xC2 and at + 1 < end and 0xA2 <= text[at + 1] <= 0xA5:
        return 2
    return 3 if byte == 0xE2 and at + 2 < end and text[at + 1] == 0x82 and text[at + 2] >= 0xA0 else 0


@inlined
def _has_digit(text, start, end):
    found = False
    for at in range(start, end):
        found |= 48 <= text[at] <= 57
    return found


@compiled
def _state(page, features):
    """Count the types that a page states: in JSON-LD and microdata (schema.org), and in Open Graph."""
    counts = np.zeros(_STATED_COUNT, np.int64)
    at, graph, end = 0, 0, len(page) - _STRIDE - 12
    while at < end:
        part, least = page[at : at + _STRIDE + 4], np.uint8(255)
        for nth in range(_STRIDE):  # differences from `@typ`, `sche` and `og:t`: 0 where all four letters agree
            a, b, c, d = part[nth], part[nth + 1], part[nth + 2], part[nth + 3]
            typed = np.uint8((a ^ _SIGN) | (b ^ _T) | (c ^ _Y) | (d ^ _P))
            schema = np.uint8((a ^ _S) | (b ^ _C) | (c ^ _H) | (d ^ _E))
            graphed = np.uint8((a ^ _O) | (b ^ _G) | (c ^ _COLON) | (d ^ _T))
            least = min(least, typed, schema, graphed)
        for place in range(at, at + _STRIDE * (least == 0)):
            graph = _stated(page, place, counts, graph)
        at += _STRIDE
    for place in range(at, len(page) - 12):
        graph = _stated(page, place, counts, graph)
    for block in range(len(features)):
        for nth in range(_STATED_COUNT):
            features[block, _F_STATED + nth] = _scaled(counts[nth])
        features[block, _F_OPEN_GRAPH] = graph


@compiled
def _stated(page, at, counts, graph):
    """Count the type of schema.org that is stated here; return that of Open Graph, the first of the page."""
    if _is_here(page, at, _AT_TYPE):
        _count_type(page, at + 6, counts)
    elif _is_here(page, at, _SCHEMA):
        _count_type(page, at + 11, counts)
    elif graph == 0 and _is_here(page, at, _OG_TYPE):
        return _graph_type(page, at)
    return graph


@inlined
def _is_here(page, at, word):
    same = at + len(word) <= len(page)
    nth = 0
    while same and nth < len(word):
        same = page[at + nth] == word[nth]
        nth += 1
    return same


@inlined
def _count_type(page, at, counts):
    """Count the type whose name begins here, behind some signs."""
    stop = min(at + 6, len(page))
    while at < stop and not is_letter(page[at]):
        at += 1
    key = _key_here(page, at)
    for nth in range(len(_STATED_KEYS)):
        if _STATED_KEYS[nth] == key:
            counts[_STATED_SLOTS[nth]] += 1


@inlined
def _key_here(page, at):
    key = _BASIS
    while at < len(page) and (is_letter(page[at]) or page[at] == 46):
        key = (key ^ np.uint64(lower(page[at]))) * _PRIME
        at += 1
    return key


@inlined
def _graph_type(page, at):
    """Return the number of the type in the tag around, 1 for others."""
    start, stop = at, at
    while start > max(at - _TAG_SIZE, 0) and page[start] != 60:
        start -= 1
    while stop < min(at + _TAG_SIZE, len(page)) and page[stop] != 62:
        stop += 1
    number = 1
    for place in range(start, stop):
        if page[place] == 99 and _is_here(page, place, _CONTENT):
            begin = place + 8
            while begin < stop and not is_letter(page[begin]):
                begin += 1
            key = _key_here(page, begin)
            for nth in range(len(_OPEN_GRAPH_KEYS)):
                if _OPEN_GRAPH_KEYS[nth] == key:
                    number = nth + 2
    return number


@compiled
def _sums(rows, table, signs):
    """Return sums over the blocks before each: words, linked ones, in sentences, long ones, prices, years."""
    sums = np.zeros((len(rows) + 1, 6), np.int64)
    for block in range(len(rows)):
        words, linked, shown = rows[block, m.WORDS], rows[block, m.LINKED], not table[block, B_FLAGS] & IS_HIDDEN
        is_long = shown and words >= LONG and 2 * linked < words
        sums[block + 1, 0] = sums[block, 0] + words
        sums[block + 1, 1] = sums[block, 1] + linked
        sums[block + 1, 2] = sums[block, 2] + (rows[block, m.SENTENCES] if shown else 0)
        sums[block + 1, 3] = sums[block, 3] + (words if is_long else 0)
        sums[block + 1, 4] = sums[block, 4] + signs[block, 0]
        sums[block + 1, 5] = sums[block, 5] + signs[block, 1]
    return sums


@compiled
def _paths(nodes):
    """Return a number for each node that those with the same tags above them share."""
    paths = np.empty(len(nodes), np.uint64)
    for node in range(len(nodes)):
        above = paths[nodes[node, N_PARENT]] if nodes[node, N_PARENT] >= 0 else np.uint64(0xCBF29CE484222325)
        paths[node] = (above ^ np.uint64(nodes[node, N_TAG])) * np.uint64(0x100000001B3)
        paths[node] ^= paths[node] >> np.uint64(29)
    return paths


@compiled
def _holding(nodes, sums, divisor, share):
    """Return the deepest node that holds so large a share of the long words."""
    total, best = sums[-1, 3], 0
    for node in range(len(nodes)):
        long = sums[nodes[node, N_LAST], 3] - sums[nodes[node, N_FIRST], 3]
        if long * divisor >= total * share and total and _is_below(nodes, node, best):
            best = node
    return best


@inlined
def _is_below(nodes, node, other):
    """Return whether a node is below another one, which begins before it: its blocks are among those of that."""
    return nodes[node, N_FIRST] >= nodes[other, N_FIRST] and nodes[node, N_LAST] <= nodes[other, N_LAST]


@compiled
def _best_run(rows, table):
    """Return the run of blocks with the most words outside links, each block costing some."""
    best, first, last, score, start = np.int64(0), 0, 0, np.int64(0), 0
    for block in range(len(rows)):
        plain = np.int64(rows[block, m.WORDS] - rows[block, m.LINKED])
        gain = plain - 3 * rows[block, m.LINKED] - 6
        if table[block, B_FLAGS] & IS_HIDDEN:
            gain = np.int64(-6)
        if score <= 0:
            score, start = np.int64(0), block
        score += gain
        if score > best:
            best, first, last = score, start, block + 1
    return np.array([first, last], np.int64)


@compiled
def _copies(rows):
    """Return how many blocks have the text of each block, and how many of those are earlier."""
    count = len(rows)
    order = np.argsort(rows[:, m.HASH], kind="mergesort")
    copies, earlier = np.zeros(count, np.int32), np.zeros(count, np.int32)
    start = 0
    for nth in range(1, count + 1):
        if nth == count or rows[order[nth], m.HASH] != rows[order[start], m.HASH]:
            for place in range(start, nth):
                copies[order[place]], earlier[order[place]] = nth - start - 1, place - start
            start = nth
    return copies, earlier


@compiled
def _titles(table, rows, text, title, features):
    """Say which share of the letters of a short block, by threes, is in the page's title, and what comes behind it."""
    groups = np.zeros(_GROUPS, np.uint8)
    _mark_groups(title, 0, len(title), groups)
    behind = 0
    for block in range(len(rows)):
        if rows[block, m.WORDS] <= _TITLE_WORDS:
            shared, count = _shared_groups(text, table[block, B_START], table[block, B_END], groups)
            features[block, _F_TITLE] = _share(shared, count)
            if 4 * shared >= 3 * count and count >= 8:
                behind = 1
        features[block, _F_BEHIND_TITLE] = behind


@compiled
def _describe_by_meta(table, rows, text, page, features):
    """Say which share of the letters of a block, by threes, is in what the page says of itself in its `meta`."""
    groups = np.zeros(_GROUPS, np.uint8)
    if not _mark_descriptions(page, groups):
        return
    for block in range(len(rows)):
        if rows[block, m.WORDS] <= _DESCRIPTION_WORDS:
            shared, count = _shared_groups(text, table[block, B_START], table[block, B_END], groups)
            features[block, _F_DESCRIPTION] = _share(shared, count)


@compiled
def _mark_descriptions(page, groups):
    """Mark the groups of letters of each `meta` that describes the page; return whether there are any."""
    found, at = False, 0
    while at + 5 < len(page):
        if page[at] != LESS:
            at += 1
            continue
        if equals(page, at, at + len(_BODY), _BODY):
            break
        if not equals(page, at, at + len(_META), _META):
            at += 1
            continue
        at += 5
        is_description, begin, end = False, 0, 0
        while at < len(page) and page[at] != GREATER:
            key, first, last, at = read_attribute(page, at, len(page))
            if key == _CONTENT_KEY:
                begin, end = first, last
            elif key in (_NAME_KEY, _PROPERTY_KEY):
                is_description |= equals(page, max(first, last - len(_DESCRIPTION)), last, _DESCRIPTION)
        if is_description and end > begin:
            _mark_groups(page, begin, end, groups)
            found = True
    return found


@inlined
def _mark_groups(text, start, end, groups):
    group = np.uint64(0)
    for at in range(start, end):
        if is_alphanumeric(text[at]) or text[at] >= 0x80:
            group = (group << np.uint64(8) | np.uint64(lower(text[at]))) & np.uint64(0xFFFFFF)
            groups[_slot(group)] = 1


@inlined
def _shared_groups(text, start, end, groups):
    group, shared, count = np.uint64(0), 0, 0
    for at in range(start, end):
        if is_alphanumeric(text[at]) or text[at] >= 0x80:
            group = (group << np.uint64(8) | np.uint64(lower(text[at]))) & np.uint64(0xFFFFFF)
            count += 1
            shared += groups[_slot(group)] if count > 2 else 0
    return shared, max(count - 2, 1)


@inlined
def _slot(group):
    return np.int64((group * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(52))


@compiled
def _texts(rows, features):
    for block in range(len(rows)):
        row, f = rows[block], features[block]
        words, chars = row[m.WORDS], row[m.CHARS]
        f[0] = _scaled(words)
        f[1] = _scaled(4 * chars // max(words, 1))
        f[2] = _scaled(row[m.LONGEST])
        f[3], f[4], f[5] = _share(row[m.DIGITS], chars), _share(row[m.CAPITALS], chars), _share(row[m.SIGNS], chars)
        f[6], f[7], f[8], f[9] = (
            _scaled(row[m.STOPS]),
            _scaled(row[m.COMMAS]),
            _scaled(row[m.COLONS]),
            _scaled(row[m.BARS]),
        )
        f[10], f[11] = _scaled(row[m.LINES]), _share(row[m.SENTENCES], words)
        f[12], f[13] = row[m.ENDS], row[m.STARTS]
        f[14], f[15] = _share(row[m.LINKED], words), _scaled(row[m.LINKS])
        f[16], f[17], f[18] = _share(row[m.CODED], chars), _share(row[m.STRONGS], chars), _share(row[m.EMPHASES], chars)


@compiled
def _elements(table, nodes, sums, features):
    within = np.zeros(len(nodes), np.int64)
    depth = np.zeros(len(nodes), np.int64)
    for node in range(1, len(nodes)):
        above = nodes[node, N_PARENT]
        within[node] = within[above] | _WITHIN_BITS[nodes[node, N_TAG]]
        depth[node] = depth[above] + 1
    for block in range(len(table)):
        f, node = features[block, _F_ELEMENT:], table[block, B_NODE]
        f[0], f[1] = table[block, B_KIND], min(table[block, B_LEVEL], 255)
        f[2] = 0 if table[block, B_MARKER] == NO_MARKER else 1 if table[block, B_MARKER] == NO_MARKER + 1 else 2
        f[3] = nodes[node, N_TAG]
        above = max(nodes[node, N_PARENT], 0)
        f[4] = nodes[above, N_TAG]
        f[5] = nodes[max(nodes[above, N_PARENT], 0), N_TAG]
        f[6] = min(depth[node], 255)
        f[7] = nodes[above, N_LAST] == block + 1
        f[8] = nodes[above, N_LAST] - nodes[above, N_FIRST] == 1
        g = features[block, _F_WITHIN:]
        for nth in range(_WITHIN_COUNT):
            g[nth] = within[node] >> nth & 1
        _enclosing(nodes, node, sums, features[block, _F_ENCLOSED:])


@inlined
def _enclosing(nodes, node, sums, f):
    """Describe the nearest elements that hold more and more of the page."""
    total, nth, size = sums[-1, 3], 0, -1
    while node >= 0 and nth < _ENCLOSING:
        first, last = nodes[node, N_FIRST], nodes[node, N_LAST]
        if last - first > size:
            size = last - first
            words = sums[last, 0] - sums[first, 0]
            f[6 * nth] = _scaled(words)
            f[6 * nth + 1] = _share(sums[last, 1] - sums[first, 1], words)
            f[6 * nth + 2] = _share(sums[last, 2] - sums[first, 2], words)
            f[6 * nth + 3] = _share(sums[last, 3] - sums[first, 3], total)
            f[6 * nth + 4] = _scaled(last - first)
            f[6 * nth + 5] = nodes[node, N_TAG]
            nth += 1
        node = nodes[node, N_PARENT]


@compiled
def _positions(table, nodes, rows, sums, best, half, most, copies, earlier, features):
    count, total = len(table), sums[-1, 0]
    h1 = heading = -1
    heading_end = 0
    for block in range(count):
        is_heading = table[block, B_KIND] == HEADED
        if is_heading:
            heading = block
        if is_heading and table[block, B_LEVEL] == 1 and h1 < 0:
            h1 = block
        f = features[block, _F_PLACE:]
        f[0], f[1], f[2] = _scaled(min(block, _FAR_BLOCKS)), _share(block, count), _share(sums[block, 0], total)
        f[3], f[4] = _far(sums[block, 0]), _far(total - sums[block + 1, 0])
        f[5] = 0 if h1 < 0 else 1 if h1 == block else 2
        f[6] = 255 if h1 < 0 else _far(sums[block, 0] - sums[h1, 0])
        f[8] = _is_in(nodes, half, block)
        f[9] = _is_in(nodes, most, block)
        f[10], f[11] = _scaled(nodes[half, N_FIRST] - block), _scaled(block + 1 - nodes[half, N_LAST])
        f[12], f[13] = _scaled(nodes[most, N_FIRST] - block), _scaled(block + 1 - nodes[most, N_LAST])
        f[14] = best[0] <= block < best[1]
        f[15], f[16] = _scaled(best[0] - block), _scaled(block + 1 - best[1])
        f[17] = _scaled(max(sums[best[0], 0] - sums[block, 0], sums[block, 0] - sums[best[1], 0], 0))
        f[18], f[19] = _scaled(copies[block]), _scaled(earlier[block])
        f[20] = 255 if heading < 0 else _scaled(block - heading)
        f[21] = 0 if heading < 0 else table[heading, B_LEVEL]
        f[22] = 0 if heading < 0 else _scaled(rows[heading, m.WORDS])
        if block in (heading, 0):
            heading_end = block + 1
            while heading_end < count and table[heading_end, B_KIND] != HEADED:
                heading_end += 1
        first = max(heading, 0)
        words = sums[heading_end, 0] - sums[first, 0]
        f[23], f[24] = _scaled(words), _share(sums[heading_end, 1] - sums[first, 1], words)
        f[25] = _share(sums[heading_end, 2] - sums[first, 2], words)


@inlined
def _far(words):
    """Return how many words are between two places, and no more than `_FAR_WORDS`."""
    return _scaled(min(words, _FAR_WORDS))


@inlined
def _is_in(nodes, node, block):
    return nodes[node, N_FIRST] <= block < nodes[node, N_LAST]


@compiled
def _likes(table, nodes, rows, paths, sums, features):
    """Describe the blocks whose elements have the same tags, and the siblings that are like an element around."""
    count = len(table)
    keys = np.empty(count, np.uint64)
    for block in range(count):
        keys[block] = paths[table[block, B_NODE]] ^ np.uint64(table[block, B_KIND])
    order = np.argsort(keys, kind="mergesort")
    start = 0
    for nth in range(1, count + 1):
        if nth < count and keys[order[nth]] == keys[order[start]]:
            continue
        words, linked, sentences = np.int64(0), np.int64(0), np.int64(0)
        for place in range(start, nth):
            words += rows[order[place], m.WORDS]
            linked += rows[order[place], m.LINKED]
            sentences += rows[order[place], m.SENTENCES]
        for place in range(start, nth):
            f = features[order[place], _F_LIKE:]
            f[0], f[1], f[2] = _scaled(nth - start), _scaled(words), _share(linked, words)
            f[3], f[4], f[5] = _share(sentences, words), _scaled(place - start), _share(words, sums[-1, 0])
        start = nth
    groups = _sibling_groups(nodes, sums)
    inner, outer = _nearest_groups(nodes, groups)
    for block in range(count):
        node = table[block, B_NODE]
        f = features[block, _F_LIKE:]
        for side in range(2):
            group = inner[node] if side == 0 else outer[node]
            if group >= 0:
                place = 6 if side == 0 else 10
                words = groups[group, 1]
                f[place], f[place + 1] = _scaled(groups[group, 0]), _scaled(words // groups[group, 0])
                f[place + 2] = _share(groups[group, 2], words)
                if side == 0:
                    f[place + 3] = _share(groups[group, 3], words)
                    f[13], f[14] = _share(words, sums[-1, 0]), _scaled(groups[group, 4])
                    f[15] = _scaled(nodes[group, N_LAST] - nodes[group, N_FIRST])
                else:
                    f[16], f[17] = _share(words, sums[-1, 0]), _share(groups[group, 3], words)
                    f[18] = _scaled(groups[group, 4])


@compiled
def _sibling_groups(nodes, sums):
    """Return for each node how many siblings of its tag have text, their words, those linked and in sentences.

    Behind these: which of them it is.
    """
    groups = np.zeros((len(nodes), 5), np.int64)
    first_of = np.full((len(nodes), _SLOTS), -1, np.int64)  # of each parent: the first child of some tags
    own = np.empty(len(nodes), np.int64)
    for node in range(1, len(nodes)):
        parent, tag = nodes[node, N_PARENT], nodes[node, N_TAG]
        own[node] = node
        first, last = nodes[node, N_FIRST], nodes[node, N_LAST]
        if last <= first:
            continue
        for slot in range(_SLOTS):
            if first_of[parent, slot] < 0:
                first_of[parent, slot] = node
            if nodes[first_of[parent, slot], N_TAG] == tag:
                own[node] = first_of[parent, slot]
                break
        head = own[node]
        groups[node, 4] = groups[head, 0]
        groups[head, 0] += 1
        for field in range(3):
            groups[head, 1 + field] += sums[last, field] - sums[first, field]
    for node in range(1, len(nodes)):
        if own[node] != node:
            groups[node, :4] = groups[own[node], :4]
    return groups


@compiled
def _nearest_groups(nodes, groups):
    """Return for each node the nearest and the outermost node around it that has at least two siblings like it."""
    inner, outer = np.full(len(nodes), -1, np.int64), np.full(len(nodes), -1, np.int64)
    for node in range(1, len(nodes)):
        parent = nodes[node, N_PARENT]
        is_repeated = groups[node, 0] >= 3
        inner[node] = node if is_repeated else inner[parent]
        outer[node] = outer[parent] if outer[parent] >= 0 else node if is_repeated else -1
    return inner, outer


@compiled
def _branches(table, nodes, sums, holder, features):
    """Describe the branch of each block: its outermost element that does not hold the node `holder` as well.

    Within the holder it is the child that the block is in.
    """
    count = len(nodes)
    branch, depth, nth = np.full(count, -1, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    children = np.zeros(count, np.int64)
    for node in range(1, count):
        parent = nodes[node, N_PARENT]
        depth[node] = depth[parent] + 1
        if nodes[node, N_LAST] > nodes[node, N_FIRST]:
            nth[node] = children[parent]
            children[parent] += 1
        is_over = node <= holder and _is_below(nodes, holder, node) and _is_above(nodes, node, holder)
        if not is_over:
            branch[node] = node if branch[parent] < 0 else branch[parent]
    headings = np.zeros(len(table) + 1, np.int64)
    for block in range(len(table)):
        headings[block + 1] = headings[block] + (table[block, B_KIND] == HEADED)
    first, last = nodes[holder, N_FIRST], nodes[holder, N_LAST]
    for block in range(len(table)):
        f, own = features[block], np.int64(table[block, B_NODE])
        f[12] = 0 if block < first else 1 if block < last else 2
        top = branch[own]
        held = own if top < 0 else np.int64(nodes[top, N_PARENT])
        if top < 0:
            top = own
        begin, end = nodes[top, N_FIRST], nodes[top, N_LAST]
        words = sums[end, 0] - sums[begin, 0]
        f[0], f[1] = _scaled(words), _share(sums[end, 1] - sums[begin, 1], words)
        f[2], f[3] = _share(sums[end, 2] - sums[begin, 2], words), _share(sums[end, 3] - sums[begin, 3], sums[-1, 3])
        f[4], f[5] = _scaled(end - begin), nodes[top, N_TAG]
        f[6], f[7] = _scaled(depth[own] - depth[held]), _scaled(depth[holder] - depth[held])
        f[8], f[9] = _scaled(nth[top]), _scaled(headings[end] - headings[begin])
        f[13] = _scaled(sums[end, 4] - sums[begin, 4])
        begin, end = nodes[held, N_FIRST], nodes[held, N_LAST]
        words = sums[end, 0] - sums[begin, 0]
        f[10], f[11] = _share(words, sums[-1, 0]), _share(sums[end, 1] - sums[begin, 1], words)


@inlined
def _is_above(nodes, node, other):
    """Return whether a node is another one or around it."""
    while other > node:
        other = nodes[other, N_PARENT]
    return other == node


@compiled
def _headlines(table, nodes, rows, sums, features):
    """Describe where each block is with respect to the headline: the heading that says most of the page's title."""
    best, headline = np.int64(0), -1
    for block in range(len(table)):
        is_heading = table[block, B_KIND] == HEADED
        alike = np.int64(features[block, _F_TITLE])
        weight = alike + (128 if table[block, B_LEVEL] == 1 else 48) if is_heading else alike - 96
        if table[block, B_FLAGS] & IS_HIDDEN:
            weight -= 96
        if weight > best and rows[block, m.WORDS]:
            best, headline = weight, block
    if headline < 0:
        return
    above = np.zeros(len(nodes), np.bool_)
    node = np.int64(table[headline, B_NODE])
    while node >= 0:
        above[node] = True
        node = np.int64(nodes[node, N_PARENT])
    for block in range(len(table)):
        f, up = features[block, _F_HEADLINE:], 0
        node = np.int64(table[block, B_NODE])
        while not above[node]:
            node = np.int64(nodes[node, N_PARENT])
            up += 1
        f[0] = 1 if block < headline else 2 if block == headline else 3
        f[1] = _far(abs(sums[block, 0] - sums[headline, 0]))
        f[2], f[3] = _scaled(min(abs(block - headline), _FAR_BLOCKS)), _scaled(up)
        first, last = nodes[node, N_FIRST], nodes[node, N_LAST]
        f[4] = _share(sums[last, 3] - sums[first, 3], sums[-1, 3])
        f[5] = _share(sums[last, 1] - sums[first, 1], sums[last, 0] - sums[first, 0])
        f[6], f[7] = 1 + table[headline, B_LEVEL], features[headline, _F_TITLE]


@compiled
def _pages(table, nodes, rows, sums, best, half, copies, features):
    count = len(table)
    kinds = np.zeros(16, np.int64)
    h1 = forms = articles = copied = paragraphs = 0
    for block in range(count):
        kinds[table[block, B_KIND]] += rows[block, m.WORDS]
        h1 += table[block, B_KIND] == HEADED and table[block, B_LEVEL] == 1
        copied += copies[block] > 0
        paragraphs += rows[block, m.SENTENCES] > 0
    for node in range(len(nodes)):
        forms += nodes[node, N_TAG] == _FORM
        articles += nodes[node, N_TAG] == _ARTICLE
    words, long = sums[-1, 0], sums[-1, 3]
    page = np.empty(19, np.uint8)
    page[0], page[1], page[2], page[3] = (
        _scaled(words),
        _scaled(count),
        _share(sums[-1, 1], words),
        _share(sums[-1, 2], words),
    )
    page[4], page[5], page[6] = _share(long, words), _share(kinds[HEADED], words), _share(kinds[ITEMIZED], words)
    page[7], page[8], page[9] = _share(kinds[ROW], words), _share(kinds[CODE], words), _scaled(forms)
    page[10], page[11], page[12], page[13] = _scaled(h1), _scaled(articles), _scaled(paragraphs), _share(copied, count)
    page[14] = _share(sums[nodes[half, N_LAST], 0] - sums[nodes[half, N_FIRST], 0], words)
    page[15] = _share(sums[best[1], 0] - sums[best[0], 0], words)
    hidden = np.int64(0)
    for block in range(count):
        hidden += rows[block, m.WORDS] if table[block, B_FLAGS] & IS_HIDDEN else 0
    page[16], page[17], page[18] = _share(hidden, words), _scaled(sums[-1, 4]), _scaled(sums[-1, 5])
    for block in range(count):
        features[block, _F_PAGE : _F_PAGE + 19] = page


@compiled
def _neighbors(table, rows, sums, features):
    count = len(table)
    for block in range(count):
        for side in range(2):
            f, other = features[block, _F_NEAR + side * _NEARS :], block + 2 * side - 1
            if 0 <= other < count:
                words = rows[other, m.WORDS]
                f[0], f[1] = _scaled(words), _share(rows[other, m.LINKED], words)
                f[2] = _share(rows[other, m.SENTENCES], words)
                f[3], f[4] = 1 + table[other, B_KIND], rows[other, m.ENDS]
        g, place = features[block, _F_WINDOW:], 0
        for size in _SIZES:
            first, last = max(block - size, 0), min(block + size + 1, count)
            words = sums[last, 0] - sums[first, 0]
            g[place], g[place + 1] = _scaled(words), _share(sums[last, 1] - sums[first, 1], words)
            g[place + 2], g[place + 3] = (
                _share(sums[last, 2] - sums[first, 2], words),
                _share(sums[last, 3] - sums[first, 3], words),
            )
            place += 4
