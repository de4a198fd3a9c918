"""What packets of XMP in files say of their use: reservations of TDMRep, and licenses of documents."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.rights.packets import MOST_BYTES, packet_signals
from pipeline_tasks.text.rights.signals import Signal
from tests.xmp import packet

BY = "https://creativecommons.org/licenses/by/4.0/"
BOTH = [("permitted", "tdm-reservation=0"), ("tdm_reservation", "1")]
PDF = '<p:Producer xmlns:p="http://ns.adobe.com/pdf/1.3/">A writer</p:Producer>'


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (packet("", 't:reservation="1"'), [("tdm_reservation", "1")]),
        (
            packet("<t:reservation> 1 </t:reservation><t:policy>https://a.example/terms</t:policy>"),
            [("tdm_reservation", "1; policy https://a.example/terms")],
        ),
        (packet("<t:reservation>0</t:reservation>"), [("permitted", "tdm-reservation=0")]),
        (packet("<t:reservation>0</t:reservation>") + packet("", 't:reservation="1"'), BOTH),
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
def test_what_packets_say(file: bytes, said: list[tuple[str, str]]) -> None:
    assert packet_signals(file) == [Signal(signal, value, "xmp") for signal, value in said]


def test_a_packet_of_as_many_properties_as_it_may_have_is_read() -> None:
    """Each name was looked for among all of them, which takes hours."""
    many = "".join(f"<p{at}/>" for at in range(MOST_BYTES // 12))
    assert packet_signals(packet(many, 't:reservation="1"')) == [Signal("tdm_reservation", "1", "xmp")]


def test_a_statement_that_is_there_twice_is_told_once() -> None:
    assert packet_signals(packet("", 't:reservation="1"') * 3) == [Signal("tdm_reservation", "1", "xmp")]


@given(st.binary(max_size=300), st.text("<>!/?:=\"'&tdmreservation1 ", max_size=200))
def test_no_bytes_are_a_fault(noise: bytes, content: str) -> None:
    packet_signals(noise + packet(content) + noise)
