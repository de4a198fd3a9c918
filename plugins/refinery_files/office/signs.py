"""Gives the letters of the fonts Symbol and Wingdings, which have codes of Latin letters or of private use, as Unicode.

Source: Adobe's Symbol encoding as Unicode's mapping of it (VENDORS/ADOBE/symbol.txt); of Wingdings the check boxes and
arrows alone.
"""

_PRIVATE = range(0xF000, 0xF100)
_SYMBOL = dict(
    zip(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
        "\u0391\u0392\u03a7\u0394\u0395\u03a6\u0393\u0397\u0399\u03d1\u039a\u039b\u039c\u039d\u039f\u03a0\u0398\u03a1\u03a3\u03a4\u03a5\u03c2\u03a9\u039e\u03a8\u0396"
        "\u03b1\u03b2\u03c7\u03b4\u03b5\u03c6\u03b3\u03b7\u03b9\u03d5\u03ba\u03bb\u03bc\u03bd\u03bf\u03c0\u03b8\u03c1\u03c3\u03c4\u03c5\u03d6\u03c9\u03be\u03c8\u03b6",
        strict=True,
    )
)
_SYMBOL |= {
    chr(0x22): "\u2200",
    "$": "\u2203",
    "'": "\u220b",
    "*": "\u2217",
    "-": "\u2212",
    "@": "\u2245",
    "\\": "\u2234",
}
_SYMBOL |= {"^": "\u22a5", "~": "\u223c"}
_SYMBOL |= dict(
    zip(
        map(chr, range(0xA1, 0xB0)),
        "\u03d2\u2032\u2264\u2044\u221e\u0192\u2663\u2666\u2665\u2660\u2194\u2190\u2191\u2192\u2193",
        strict=True,
    )
)
_SYMBOL |= dict(
    zip(
        map(chr, range(0xB0, 0xC0)),
        "\u00b0\u00b1\u2033\u2265\u00d7\u221d\u2202\u2022\u00f7\u2260\u2261\u2248\u2026\u23d0\u23af\u21b5",
        strict=True,
    )
)
_SYMBOL |= dict(
    zip(
        map(chr, range(0xC0, 0xE0)),
        "\u2135\u2111\u211c\u2118\u2297\u2295\u2205\u2229\u222a\u2283\u2287\u2284\u2282\u2286\u2208\u2209"
        "\u2220\u2207\u00ae\u00a9\u2122\u220f\u221a\u22c5\u00ac\u2227\u2228\u21d4\u21d0\u21d1\u21d2\u21d3",
        strict=True,
    )
)
_SYMBOL |= {"\xe0": "\u25ca", "\xe5": "\u2211", "\xf2": "\u222b", "\xe1": "\u2329", "\xf1": "\u232a"}
_WINGDINGS = {"\xa8": "\u2610", "\xfe": "\u2611", "\xfd": "\u2612", "\xfc": "\u2713", "\xfb": "\u2717", "o": "\u2610"}
_WINGDINGS |= {
    "\xe0": "\u2192",
    "\xdf": "\u2190",
    "\xe8": "\u2794",
    "l": "\u25cf",
    "n": "\u25a0",
    "q": "\u2751",
    "\xa7": "\u25aa",
}
_FONTS = {"Symbol": _SYMBOL, "Wingdings": _WINGDINGS}


def symbol(sign: str, font: str | None) -> str:
    """Return what a sign of a font is in Unicode; "" of a picture that Unicode may not have."""
    if not sign:
        return ""
    plain = chr(ord(sign) - 0xF000) if ord(sign) in _PRIVATE else sign
    table = _FONTS.get(font or "")
    if table is None:
        return "" if plain != sign else sign
    return table.get(plain, "" if font == "Wingdings" else plain)
