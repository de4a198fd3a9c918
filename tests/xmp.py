"""Packets of XMP as files have them."""

SPACES = (
    'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:t="http://www.w3.org/ns/tdmrep/" '
    'xmlns:cc="http://creativecommons.org/ns#" xmlns:r="http://ns.adobe.com/xap/1.0/rights/"'
)


def packet(content: str, attributes: str = "") -> bytes:
    """A file with a packet in it, as a PDF has it."""
    description = f'<rdf:Description rdf:about="" {attributes}>{content}</rdf:Description>'
    body = f'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF {SPACES}>{description}</rdf:RDF></x:xmpmeta>'
    start = '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>'
    return b"%PDF-1.7\n1 0 obj\nstream\n" + f'{start}{body}<?xpacket end="w"?>'.encode() + b"\nendstream"
