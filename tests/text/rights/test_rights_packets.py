"""What packets of XMP in files say of their use: reservations of TDMRep, and licenses of documents."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.rights.packets import MOST_BYTES, packet_signals
from pipeline_tasks.text.rights.signals import Signal

SPACES = (
    'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:t="http://www.w3.org/ns/tdmrep/" '
    'xmlns:cc="http://creativecommons.org/ns#" xmlns:r="http://ns.adobe.com/xap/1.0/rights/"'
)
BY = "https://creativecommons.org/licenses/by/4.0/"
PDF = '<p:Producer xmlns:p="http://ns.adobe.com/pdf/1.3/">A writer</p:Producer>'


def packet(content: str, attributes: str = "") -> bytes:
    """A file with a packet in it, as a PDF has it."""
    description = f'<rdf:Description rdf:about="" {attributes}>{content}</rdf:Description>'
    body = f'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF {SPACES}>{description}</rdf:RDF></x:xmpmeta>'
    start = '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>'
    return b"%PDF-1.7\n1 0 obj\nstream\n" + f'{start}{body}<?xpacket end="w"?>'.encode() + b"\nendstream"


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (packet("", 't:reservation="1"'), [("tdm_reservation", "1")]),
        (
            packet("<t:reservation> 1 </t:reservation><t:policy>https://a.example/terms</t:policy>"),
            [("tdm_reservation", "1; policy https://a.example/terms")],
        ),
        (packet("<t:reservation>0</t:reservation>"), [("permitted", "tdm-reservation=0")]),
        (packet("<t:reservation>0</t:reservation>") + packet("", 't:reservation="1"'), ["permitted", "reserved"]),
        (packet(f'{PDF}<cc:license rdf:resource="{BY}"/>'), [("license", BY)]),
        (packet(f"{PDF}<r:WebStatement>{BY}</r:WebStatement>"), [("license", BY)]),
        (packet(f'{PDF}<cc:license rdf:resource="{BY}"/><r:WebStatement>{BY}</r:WebStatement>'), [("license", BY)]),
        (packet(f"{PDF}<r:WebStatement>https://a.example/about</r:WebStatement>"), []),
        (packet(f'<cc:license rdf:resource="{BY}"/>'), []),  # of an image in the document
        (packet("<t:reservation>1</t:reservation><broken"), []),
        (packet("", 't:reservation="1"').replace(b"<x:xmpmeta", b"<!DOCTYPE x [<!ENTITY a 'b'>]><x:xmpmeta"), []),
        (packet("", 't:reservation="1"').replace(b"<?xpacket end", b""), []),  # cut
        (packet(" " * MOST_BYTES, 't:reservation="1"'), []),
        (b"%PDF-1.4 tdm:reservation 1", []),
    ],
)
def test_what_packets_say(file: bytes, said: list[tuple[str, str]] | list[str]) -> None:
    found = packet_signals(file)
    assert {signal.source for signal in found} <= {"xmp"}
    if said == ["permitted", "reserved"]:
        assert [signal.signal for signal in found] == ["permitted", "tdm_reservation"]
    else:
        assert [(signal.signal, signal.value) for signal in found] == said


def test_a_statement_that_is_there_twice_is_told_once() -> None:
    assert packet_signals(packet("", 't:reservation="1"') * 3) == [Signal("tdm_reservation", "1", "xmp")]


@given(st.binary(max_size=300), st.text("<>!/?:=\"'&tdmreservation1 ", max_size=200))
def test_no_bytes_are_a_fault(noise: bytes, content: str) -> None:
    packet_signals(noise + packet(content) + noise)
