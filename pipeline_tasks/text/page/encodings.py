"""Decodes bytes as browsers do: the encodings of the WHATWG Encoding Standard, by their labels.

Source of labels and of what they mean: https://encoding.spec.whatwg.org (`4.2 Names and labels`, and the indexes).
Python's codecs of these names lack what browsers read: `iso-8859-1` is windows-1252, `shift_jis` is windows-31j, `gbk`
is gb18030, `euc-kr` is windows-949, `big5` has the characters of Hong Kong, and the bytes that windows-125x leaves free
are control characters. What is left to differ: 207 characters of big5 (lead byte 87), and one of windows-1255.
"""

import codecs
import re

UTF8, JIS = "utf-8", "iso-2022-jp"

_LABELS = {
    UTF8: "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8",
    "ibm866": "866 cp866 csibm866 ibm866",
    "iso-8859-2": "csisolatin2 iso-8859-2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2",
    "iso-8859-3": "csisolatin3 iso-8859-3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3",
    "iso-8859-4": "csisolatin4 iso-8859-4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4",
    "iso-8859-5": "csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988",
    "iso-8859-6": (
        "arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6 iso-8859-6-e iso-8859-6-i "
        "iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987"
    ),
    "iso-8859-7": (
        "csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 iso-ir-126 iso8859-7 iso88597 iso_8859-7 "
        "iso_8859-7:1987 sun_eu_greek"
    ),
    "iso-8859-8": (
        "csiso88598e csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e iso-ir-138 iso8859-8 iso88598 iso_8859-8 "
        "iso_8859-8:1988 visual csiso88598i iso-8859-8-i logical"
    ),
    "iso-8859-10": "csisolatin6 iso-8859-10 iso-ir-157 iso8859-10 iso885910 l6 latin6",
    "iso-8859-13": "iso-8859-13 iso8859-13 iso885913",
    "iso-8859-14": "iso-8859-14 iso8859-14 iso885914",
    "iso-8859-15": "csisolatin9 iso-8859-15 iso8859-15 iso885915 iso_8859-15 l9",
    "iso-8859-16": "iso-8859-16",
    "koi8-r": "cskoi8r koi koi8 koi8-r koi8_r",
    "koi8-u": "koi8-ru koi8-u",
    "macintosh": "csmacintosh mac macintosh x-mac-roman",
    "windows-874": "dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874",
    "windows-1250": "cp1250 windows-1250 x-cp1250",
    "windows-1251": "cp1251 windows-1251 x-cp1251",
    "windows-1252": (
        "ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 iso_8859-1 "
        "iso_8859-1:1987 l1 latin1 us-ascii windows-1252 x-cp1252 x-user-defined"
    ),
    "windows-1253": "cp1253 windows-1253 x-cp1253",
    "windows-1254": (
        "cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5 "
        "windows-1254 x-cp1254"
    ),
    "windows-1255": "cp1255 windows-1255 x-cp1255",
    "windows-1256": "cp1256 windows-1256 x-cp1256",
    "windows-1257": "cp1257 windows-1257 x-cp1257",
    "windows-1258": "cp1258 windows-1258 x-cp1258",
    "x-mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian",
    "gb18030": "chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk gb18030",
    "big5": "big5 big5-hkscs cn-big5 csbig5 x-x-big5",
    "euc-jp": "cseucpkdfmtjapanese euc-jp x-euc-jp",
    JIS: "csiso2022jp iso-2022-jp",
    "shift_jis": "csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis",
    "euc-kr": (
        "cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949"
    ),
    "utf-16be": "unicodefffe utf-16be",
    "utf-16le": "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le",
}
_ENCODING_OF = {label: name for name, labels in _LABELS.items() for label in labels.split()}

_CODECS = {
    "windows-874": "cp874",
    "x-mac-cyrillic": "mac_cyrillic",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc-kr": "cp949",
}
"""Python's codec of an encoding whose name it does not know, or takes for another."""

_FREE = range(0x80, 0xA0)
"""Bytes that a windows encoding leaves free are these control characters (index of each single-byte encoding)."""

_READ = {
    "koi8-u": str.maketrans("\u255d\u256c", "\u045e\u040e"),
    "euc-jp": str.maketrans("\u301c\u2016\u2212\u00a2\u00a3\u00ac", "\uff5e\u2225\uff0d\uffe0\uffe1\uffe2"),
    "gb18030": str.maketrans(
        "\ue5e5\ue78d\ue78e\ue78f\ue790\ue791\ue792\ue793\ue794\ue795\ue796"
        "\ue7c7\ue81e\ue826\ue82b\ue82c\ue832\ue843\ue854\ue864",
        "\u3000\ufe10\ufe12\ufe11\ufe13\ufe14\ufe15\ufe16\ufe17\ufe18\ufe19"
        "\u1e3f\u9fb4\u9fb5\u9fb6\u9fb7\u9fb8\u9fb9\u9fba\u9fbb",
    ),
}
"""What browsers read where Python's codec of an encoding has another character."""

_NONE_OF_SHIFT_JIS = re.compile("[\uf8f0-\uf8f3]")
"""What Python's cp932 makes of the bytes A0 and FD to FF, which are none of the encoding."""

_ESCAPE = re.compile(rb"\x1b(?:\$[@B]|\([BJI])")
"""The escapes of ISO-2022-JP: two bytes a character, ASCII, Roman, half-width katakana."""

_TWO_BYTES = (b"\x1b$@", b"\x1b$B")


def encoding_of(label: str) -> str:
    """Return the name of the encoding that a label means to browsers, "" if it means none."""
    return _ENCODING_OF.get(label.strip().lower(), "")


def decode_as(data: bytes | memoryview, name: str) -> str:
    """Decode bytes strictly in an encoding by its name; UnicodeDecodeError for what a browser would replace."""
    if name == JIS:
        return _decode_jis(bytes(data))
    text = str(data, _CODECS.get(name, name), _FILL)
    if name == "shift_jis" and (wrong := _NONE_OF_SHIFT_JIS.search(text)):
        raise UnicodeDecodeError(name, bytes(data[:1]), 0, 1, f"{wrong[0]!a} is none of its characters")
    return text.translate(_READ[name]) if name in _READ else text


def replace_as(data: bytes | memoryview, name: str) -> str:
    """Decode bytes in an encoding by its name, with U+FFFD for what cannot be read; as UTF-8 if nobody knows it."""
    try:
        return decode_as(data, name)
    except UnicodeDecodeError:
        return str(data, UTF8 if name == JIS else _CODECS.get(name, name), "replace")
    except LookupError:
        return str(data, UTF8, "replace")


def has_jis(text: str) -> bool:
    """Return whether ASCII switches to two bytes a character, as ISO-2022-JP does and nothing else on the web."""
    return "\x1b$B" in text or "\x1b$@" in text


def _decode_jis(data: bytes) -> str:
    """Decode ISO-2022-JP: its characters of two bytes are those of EUC-JP, without the high bits."""
    parts, at, escape = [], 0, b"\x1b(B"
    for found in [*_ESCAPE.finditer(data), None]:
        end = found.start() if found else len(data)
        parts.append(_decode_jis_run(data[at:end], escape))
        if found:
            at, escape = found.end(), found[0]
    return "".join(parts)


def _decode_jis_run(run: bytes, escape: bytes) -> str:
    if escape not in _TWO_BYTES and escape != b"\x1b(I":
        return run.decode("ascii")
    run.decode("ascii")  # no byte of ISO-2022-JP has the high bit
    if escape == b"\x1b(I":
        return "".join(chr(0xFF40 + byte) if 0x20 < byte < 0x60 else chr(byte) for byte in run)
    return decode_as(bytes(byte | 0x80 if byte > 0x20 else byte for byte in run), "euc-jp")


_FILL = "refinery.whatwg"


def _fill(error: UnicodeError) -> tuple[str, int]:
    """Give the character that browsers read where Python's codec has none; else raise the error."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    data, at = error.object, error.start
    if error.encoding == "charmap" and data[at] in _FREE:
        return chr(data[at]), at + 1
    if error.encoding == "euc_jp" and (text := _by_shift_jis(data[at : at + 2])):
        return text, at + 2
    raise error


def _by_shift_jis(pair: bytes) -> str:
    """Return the character of two bytes of EUC-JP by windows-31j, which has the same rows at other bytes."""
    if len(pair) < 2 or not all(0xA1 <= byte <= 0xFE for byte in pair):
        return ""
    row, column = pair[0] - 0xA1, pair[1] - 0xA1
    lead = row // 2 + (0x81 if row < 62 else 0xC1)
    trail = column + (0x9F if row % 2 else 0x40 if column < 63 else 0x41)
    try:
        return bytes([lead, trail]).decode("cp932")
    except UnicodeDecodeError:
        return ""


codecs.register_error(_FILL, _fill)
