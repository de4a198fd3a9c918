"""Finds what a file says of its use in packets of XMP, which a PDF has beside its text.

A packet lies uncompressed between two marks, for readers that know nothing of the file's format (ISO 16684-1, 7.3).
"""

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from pipeline_tasks.text.rights.directives import license_signal, reservation_signals
from pipeline_tasks.text.rights.licenses import license_id
from pipeline_tasks.text.rights.signals import Signal

SOURCE = "xmp"

MOST_BYTES, MOST_PACKETS = 1 << 20, 64
"""Bytes of a packet that is read, and packets of a file: images have their own."""

_BEGIN, _END = re.compile(rb"<\?xpacket begin=[^>]{0,100}\?>"), b"<?xpacket end="
_RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
_TDM = "{http://www.w3.org/ns/tdmrep/}"
_LICENSE = "{http://creativecommons.org/ns#}license"
_STATEMENT = "{http://ns.adobe.com/xap/1.0/rights/}WebStatement"
_OF_DOCUMENTS = b"http://ns.adobe.com/pdf/1.3/"
"""A namespace of documents: the packet of an image in a document does not name it, and its license is not theirs."""


def packet_signals(file: bytes) -> list[Signal]:
    """Return the reservations of TDMRep and the licenses that packets of a file state; a damaged one states nothing."""
    return list(dict.fromkeys(signal for packet in _packets(file) for signal in _stated(packet)))


def _packets(file: bytes) -> Iterator[bytes]:
    at = 0
    for _ in range(MOST_PACKETS):
        if not (begin := _BEGIN.search(file, at)) or (at := file.find(_END, begin.end())) < 0:
            return
        if at - begin.end() <= MOST_BYTES:
            yield file[begin.end() : at]


def _stated(packet: bytes) -> Iterator[Signal]:
    """Yield what a packet states; XMP has no entities and no document type, by which XML bombs are made."""
    if b"<!" in packet:
        return
    try:
        properties = [*_properties(ET.fromstring(packet))]  # noqa: S314 -- without a document type
    except (ET.ParseError, ValueError):
        return
    reservations, policies = (
        ",".join(value for name, value in properties if name == f"{_TDM}{wanted}")
        for wanted in ("reservation", "policy")
    )
    yield from reservation_signals(reservations, policies, SOURCE)
    if _OF_DOCUMENTS in packet:
        for name, value in properties:
            if value and (name == _LICENSE or (name == _STATEMENT and license_id(value))):
                yield license_signal(value, "", SOURCE)


def _properties(root: ET.Element) -> Iterator[tuple[str, str]]:
    """Yield name and value of each simple property, which is an attribute, an element or a resource (7.9.2)."""
    for element in root.iter():
        if element.tag == f"{_RDF}Description":
            yield from element.attrib.items()
        else:
            yield element.tag, (element.get(f"{_RDF}resource") or element.text or "").strip()
