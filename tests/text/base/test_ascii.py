"""Predicates of single bytes agree with Python's."""

from pipeline_tasks.text.base import ascii as ascii_bytes


def test_every_byte() -> None:
    letters = [chr(byte) if byte < 0x80 else "" for byte in range(256)]
    assert [ascii_bytes.is_digit(byte) for byte in range(256)] == [letter.isdigit() for letter in letters]
    assert [ascii_bytes.is_letter(byte) for byte in range(256)] == [letter.isalpha() for letter in letters]
    assert [ascii_bytes.is_alphanumeric(byte) for byte in range(256)] == [letter.isalnum() for letter in letters]
    assert bytes(ascii_bytes.lower(byte) for byte in range(256)) == bytes(range(256)).lower()
    assert [ascii_bytes.starts_character(byte) for byte in range(256)] == [byte >> 6 != 2 for byte in range(256)]
