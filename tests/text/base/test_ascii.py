"""Predicates of single bytes agree with Python's."""

from pipeline_tasks.text.base import ascii as ascii_bytes


def test_every_byte() -> None:
    for byte in range(256):
        letter = chr(byte) if byte < 0x80 else ""
        assert ascii_bytes.is_digit(byte) == letter.isdigit()
        assert ascii_bytes.is_letter(byte) == letter.isalpha()
        assert ascii_bytes.is_alphanumeric(byte) == letter.isalnum()
        assert ascii_bytes.lower(byte) == (ord(letter.lower()) if letter else byte)
        assert ascii_bytes.starts_character(byte) == (byte >> 6 != 2)
