"""Checksums of addresses and keys of Bitcoin (Base58Check, bech32) and of Ethereum (EIP-55)."""

import hashlib
from collections.abc import Iterable, Iterator
from functools import lru_cache

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_BECH32_ENDS = (1, 0x2BC830A3)
"""What a checksum comes to: of bech32 (BIP 173) and of bech32m (BIP 350)."""


def bare(text: bytes, start: int, end: int) -> tuple[int, int]:
    """Return the place of a long word without the hyphens and underscores around it, as lists and emphasis have."""
    word = text[start:end]
    return end - len(word.lstrip(b"_-")), start + len(word.rstrip(b"_-"))


def is_base58_check(value: bytes, versions: Iterable[int], sizes: Iterable[int]) -> bool:
    """Return whether `value` has a version byte, as many bytes as one of `sizes`, and four right bytes of check."""
    number = 0
    for letter in value.decode():
        at = _BASE58.find(letter)
        if at < 0:
            return False
        number = number * 58 + at
    for size in sizes:
        if number < 1 << 8 * (size + 4):
            body = number.to_bytes(size + 4, "big")
            check = hashlib.sha256(hashlib.sha256(body[:-4]).digest()).digest()[:4]
            if check == body[-4:] and body[0] in versions:
                return True
    return False


def is_bech32(value: bytes) -> bool:
    """Return whether `value`, in one case, has the checksum of bech32 or of bech32m."""
    text = value.decode()
    if text not in (text.lower(), text.upper()):
        return False
    prefix, _, data = text.lower().rpartition("1")
    if any(letter not in _BECH32 for letter in data):
        return False
    expanded = [ord(letter) >> 5 for letter in prefix] + [0] + [ord(letter) & 31 for letter in prefix]
    return _polymod([*expanded, *map(_BECH32.index, data)]) in _BECH32_ENDS


def _polymod(values: Iterable[int]) -> int:
    check = 1
    for value in values:
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ value
        for at, term in enumerate(_GENERATOR):
            check ^= term if top >> at & 1 else 0
    return check


@lru_cache(maxsize=4096)
def is_eip55(digits: str) -> bool:
    """Return whether the capitals of 40 hexadecimal digits are the check of EIP-55."""
    hashed = keccak_256(digits.lower().encode()).hex()
    return all(
        letter.isdigit() or letter.isupper() == (int(nibble, 16) >= 8)
        for letter, nibble in zip(digits, hashed, strict=False)
    )


# --- Keccak-256, which Ethereum took before NIST changed the padding ------------------------------------------------

_RATE = 136
_MASK = (1 << 64) - 1


def keccak_256(body: bytes) -> bytes:
    """Return the Keccak-256 hash of a short body (Keccak reference 3.0, with the padding 0x01)."""
    padded = bytearray(body + b"\x01")
    padded += bytes(-len(padded) % _RATE)
    padded[-1] |= 0x80
    lanes = [0] * 25
    for block in range(0, len(padded), _RATE):
        for at in range(_RATE // 8):
            lanes[at] ^= int.from_bytes(padded[block + 8 * at : block + 8 * at + 8], "little")
        lanes = _permuted(lanes)
    return b"".join(lane.to_bytes(8, "little") for lane in lanes[:4])


def _permuted(lanes: list[int]) -> list[int]:
    for constant in _round_constants():
        columns = [lanes[x] ^ lanes[x + 5] ^ lanes[x + 10] ^ lanes[x + 15] ^ lanes[x + 20] for x in range(5)]
        mixed = [columns[(x - 1) % 5] ^ _rotated(columns[(x + 1) % 5], 1) for x in range(5)]
        lanes = [lane ^ mixed[at % 5] for at, lane in enumerate(lanes)]
        x, y, lane = 1, 0, lanes[1]
        for step in range(24):
            x, y = y, (2 * x + 3 * y) % 5
            lanes[x + 5 * y], lane = _rotated(lane, (step + 1) * (step + 2) // 2 % 64), lanes[x + 5 * y]
        lanes = [
            lanes[at] ^ (~lanes[at - at % 5 + (at + 1) % 5] & lanes[at - at % 5 + (at + 2) % 5]) for at in range(25)
        ]
        lanes[0] ^= constant
    return lanes


def _round_constants() -> Iterator[int]:
    """Yield the constant of each of the 24 rounds, from its shift register."""
    register = 1
    for _ in range(24):
        constant = 0
        for bit in range(7):
            register = (register << 1 ^ (register >> 7) * 0x71) % 256
            if register & 2:
                constant |= 1 << ((1 << bit) - 1)
        yield constant


def _rotated(lane: int, by: int) -> int:
    return (lane << by | lane >> (64 - by)) & _MASK if by else lane
