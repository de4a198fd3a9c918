"""Characters are decoded and encoded as Python does; leading letters and digits are lower-cased eight at a time."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.base import utf8


@given(st.text(min_size=1, max_size=10))
def test_decode_and_encode(text: str) -> None:
    data, at, codes = np.frombuffer(text.encode(), np.uint8), 0, []
    while at < len(data):
        code, at = utf8.decode_valid(data, at)
        codes.append(int(code))
    assert codes == [ord(letter) for letter in text]
    size, octets = utf8.encode(codes[0])
    assert int(octets).to_bytes(8, "little")[: int(size)] == text[0].encode()


@given(st.binary(min_size=1, max_size=20), st.integers(0, 19), st.integers(1, 8))
def test_leading_alphanumerics(octets: bytes, at: int, most: int) -> None:
    at = min(at, len(octets) - 1)
    eight = np.uint64(utf8.eight_at(np.frombuffer(octets, np.uint8), at))
    assert int(eight).to_bytes(8, "little") == octets[at : at + 8].ljust(8, b"\0")
    leading = octets[at : at + most]
    for place, octet in enumerate(leading):
        if not (octet < 0x80 and chr(octet).isalnum()):
            leading = leading[:place]
            break
    count, folded = utf8.leading_alphanumerics(eight, np.uint64(most))
    assert (int(count), int(folded).to_bytes(8, "little")) == (len(leading), leading.lower().ljust(8, b"\0"))
