"""PDFs for tests, written by hand: each text stands where the test says, in the font that it says."""

from collections.abc import Iterable
from typing import NamedTuple

FONTS = {"R": "Helvetica", "B": "Helvetica-Bold", "M": "Courier"}
HEIGHT, WIDTH = 800, 600


class Drawn(NamedTuple):
    """A text on a page: its begin from the left and its baseline from the top, in points."""

    x: float
    y: float
    text: str
    size: float = 10
    font: str = "R"


def lines(
    texts: Iterable[str], x: float = 50, y: float = 100, *, size: float = 10, lead: float = 12, font: str = "R"
) -> list[Drawn]:
    """Return texts that stand below each other."""
    return [Drawn(x, y + at * lead, text, size, font) for at, text in enumerate(texts)]


def content(drawn: Iterable[Drawn | str]) -> bytes:
    """Return the operators of a page; those given as strings stay as they are."""
    written = []
    for one in drawn:
        if isinstance(one, str):
            written.append(one.encode())
            continue
        text = one.text.encode("cp1252").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")
        place = f"BT /{one.font} {one.size} Tf {one.x} {HEIGHT - one.y} Td (".encode()
        written.append(place + text + b") Tj ET")
    return b"\n".join(written)


def rules(xs: Iterable[float], ys: Iterable[float]) -> list[str]:
    """Return the rules of a grid."""
    xs, ys = sorted(xs), sorted(HEIGHT - y for y in ys)
    across = [f"{xs[0]} {y} m {xs[-1]} {y} l S" for y in ys]
    return across + [f"{x} {ys[0]} m {x} {ys[-1]} l S" for x in xs]


def pdf(
    *pages: Iterable[Drawn | str],
    info: str = "",
    catalog: str = "",
    page_entries: str = "",
    objects: dict[int, bytes] | None = None,
    resources: str = "",
) -> bytes:
    """Return a PDF of pages; `objects` come with numbers of their own, from 1000 on."""
    fonts = "".join(
        f"/{key}<</Type/Font/Subtype/Type1/BaseFont/{name}/Encoding/WinAnsiEncoding>>" for key, name in FONTS.items()
    )
    parts: dict[int, bytes] = {1: f"<</Type/Catalog/Pages 2 0 R{catalog}>>".encode()}
    kids = []
    for number, page in enumerate(pages):
        at = 10 + 2 * number
        kids.append(f"{at} 0 R")
        parts[at] = (
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 {WIDTH} {HEIGHT}]/Contents {at + 1} 0 R{page_entries}"
            f"/StructParents {number}/Resources<</Font<<{fonts}>>{resources}>>>>"
        ).encode()
        stream = content(page)
        parts[at + 1] = b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream)
    parts[2] = f"<</Type/Pages/Count {len(kids)}/Kids[{' '.join(kids)}]>>".encode()
    parts[3] = f"<<{info}>>".encode()
    parts |= objects or {}
    body = bytearray(b"%PDF-1.7\n")
    places = {}
    for number in sorted(parts):
        places[number] = len(body)
        body += b"%d 0 obj\n%s\nendobj\n" % (number, parts[number])
    begin = len(body)
    body += b"xref\n0 1\n0000000000 65535 f \n"
    for number, place in places.items():
        body += b"%d 1\n%010d 00000 n \n" % (number, place)
    return bytes(body) + b"trailer\n<</Size %d/Root 1 0 R/Info 3 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (
        max(parts) + 1,
        begin,
    )
