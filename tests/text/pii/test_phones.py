"""Phone numbers: international, North American and national formats, and what only looks like one."""

from typing import Any, SupportsIndex

import phonenumbers
import pytest

from pipeline_tasks.text.pii.candidates import Limits
from pipeline_tasks.text.pii.phones import find_phones
from pipeline_tasks.text.pii.regions import regions_of


def found(text: str, *regions: str) -> list[str]:
    body = text.encode()
    return [body[span.start : span.end].decode() for span in find_phones(body, Limits(regions or ("US",)))]


@pytest.mark.parametrize(
    ("text", "regions", "values"),
    [
        ("+44 20 7123 4567", (), ["+442071234567"]),
        ("+44 20 7123 4567 2026", (), ["+442071234567"]),
        ("(212) 555-2368 x12", ("US",), ["+12125552368"]),
        ("2125552368", ("US",), []),
        ("tel 2125552368", ("US",), ["+12125552368"]),
        ("$212-555-2368", ("US",), []),
        ("030 12345678", ("DE",), ["+493012345678"]),
        ("030 12345678", ("US",), []),
        ("Tel: 3012345678", ("DE",), ["+493012345678"]),
        ("1212-555-23689", ("US",), []),
        ("call 785 8949", ("US",), ["local:7858949"]),
    ],
)
def test_values(text: str, regions: tuple[str, ...], values: list[str]) -> None:
    assert [span.value for span in find_phones(text.encode(), Limits(regions))] == values


@pytest.mark.parametrize(
    "number",
    [
        "+49 30 1234567", "+49 (0)30 1234567-0", "+49/30/1234567", "+33 1 42 68 53 00", "+39 06 678 4343", "+47 21 30 85 99", "+86 135 3727 4136",
        "+61267881324", "+1-212-736-5000", "001-755-329-4431", "0049 30 1234567", "+49 69 630\u200b2-309",
        "212-736-5000", "(212) 736-5000", "212.736.5000", "1-212-736-5000", "(212) 736\u20135000", "212-736-5000 x12", "212-736-5000 ext. 12",
        "212-736-5000/5001", "212-736-5000/01/02",
    ],
)  # fmt: skip
@pytest.mark.parametrize("frame", ["{}", "at {}.", "({})", "Jane {}, Bonn", "x\n{}\ny"])
def test_whole_number(number: str, frame: str) -> None:
    assert found(frame.format(number)) == [number]


NATIONAL = {
    "US": "(212) 736-5000", "GB": "020 7123 4567", "AU": "(02) 9374 4000", "DE": "030 12345678", "AT": "0664 1183226", "CH": "044 668 18 00",
    "FR": "01 42 68 53 00", "BE": "02 218 12 12", "ES": "tel. 912 345 678", "IT": "06 678 4343 12", "PT": "tel. 21 123 4567", "BR": "(11) 98456-5666",
    "NL": "020 624 1111", "SE": "08-736 53 00", "NO": "22 00 00 00", "DK": "tlf. 33 12 34 56", "FI": "09 1234 5678", "PL": "tel. 22 123 45 67",
    "CZ": "tel. 224 123 456", "HU": "Tel: (06 1) 234 5678", "RO": "021 312 3456", "GR": "τηλ. 28210 70563", "TR": "0532 123 45 67",
    "RU": "тел. 8 (495) 123-45-67", "UA": "044 234 5678", "BG": "02 987 6543", "IL": "02-678 9012", "IN": "022 2345 6789", "JP": "03-3584-7231",
    "KR": "02-2000-2114", "CN": "010-63072648", "TW": "03-584-7231", "IR": "021 8888 1234",
}  # fmt: skip


@pytest.mark.parametrize("region", NATIONAL)
def test_national_formats(region: str) -> None:
    assert len(found(f"Jane, {NATIONAL[region]}; 5", region)) == 1, region


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-20 12:30", "20.11.2026", "01. 2020", "04.05.20 14", "Mo 08.30 - 12.00 Uhr", "01/2018", "03/04/02", "(2023-02-04 11:59", "0 1 2 3 4 5 6 7 8 9",
        "Boston, MA 02110-1301", "DE10 4405 0199 0212 1545 63", "Tel Aviv 300.000", "1 000 000 km", "ISBN 978-0-306-40615-7", "2010-2011 mobile phones",
        "order 212-736-5000", "$(( (1500-28) ))", "17:15:03 -0500", "3.14159265358979", "4532 3121 0790 7949", "0.8.8-13   0.8.8-13", "12345678901234567890",
        "a212-736-5000", "212-736-5000a", "9-212-736-5000-8", "192.168.1.256", "page 030 1234567",
    ],
)  # fmt: skip
def test_other_numbers(text: str) -> None:
    assert not found(text, "US", "DE", "GB", "FR")


def test_a_word_may_follow_a_number_with_its_country() -> None:
    assert found("T. +39 0474 492 390F. +39 0474 492 300") == ["+39 0474 492 390", "+39 0474 492 300"]
    assert not found("x+39 0474 492 390F")


def test_no_copy_of_the_text_is_made_for_each_number() -> None:
    """A number that a word follows is looked at in its context: the bytes that are copied grow with the text."""
    copied = []
    for times in (200, 800):
        text = Counted(b"+39 0474 492 390F " * times)
        assert len(list(find_phones(text, Limits()))) == times
        copied.append(text.copied)
    assert copied[1] < 5 * copied[0]


@pytest.mark.parametrize("piece", [b"12 ", b"00 ", b"030 1234567 "])
def test_libphonenumber_is_asked_once_for_each_number(piece: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long table of few numbers asks for each of them once, as one answer takes longer than all else."""
    limits = Limits(("US", "GB", "DE", "FR"))
    found = list(find_phones(piece * 40, limits))
    for question in ("parse", "is_valid_number", "is_possible_number", "format_number", "number_type"):
        monkeypatch.setattr(phonenumbers, question, None)
    assert list(find_phones(piece * 80, limits))[: len(found)] == found


class Counted(bytes):
    """Bytes that count how many of them are copied by slices."""

    copied = 0

    def __getitem__(self, key: SupportsIndex | slice) -> Any:
        piece = super().__getitem__(key)
        self.copied += len(piece) if isinstance(piece, bytes) else 0
        return piece


def test_two_numbers_in_a_run() -> None:
    assert found("212-736-5000 212-736-5001/212-736-5002") == ["212-736-5000", "212-736-5001", "212-736-5002"]
    assert found("Tel. 030 1234567, 030 1234568", "DE") == ["030 1234567", "030 1234568"]
    assert found("call 785 8949 / 785 8950") == ["785 8949", "785 8950"]


@pytest.mark.parametrize("number", ["5321234567", "532 123 45 67", "532-123-45-67", "02121234567", "0 (532) 1234567"])
def test_turkish_numbers_on_lines_of_their_own(number: str) -> None:
    assert found(f"Ad\n{number}\nSoyad", "TR") == [number]
    assert not found(f"Sipariş {number.lstrip('0 ')} adet", "US")


@pytest.mark.parametrize("label", ["office", "fax", "mobile", "Office", "home"])
def test_a_label_behind_a_number(label: str) -> None:
    assert found(f"Riga\n61 51 81 {label}\n") == ["61 51 81"]
    assert found(f"921-835-1650x94266 {label}") == ["921-835-1650x94266"]
    assert not found(f"12 500 000 {label} users")


def test_fictional_numbers_stay_only_as_pseudonyms() -> None:
    assert found("the fictional 212-555-0123") == ["212-555-0123"]
    assert not list(find_phones(b"+1-212-555-0123", Limits(keep_pseudonyms=True)))


@pytest.mark.parametrize(
    ("language", "host", "regions"),
    [
        ("de", "www.example.org", ("US", "DE", "AT", "CH")),
        ("de", "example.at", ("US", "DE", "AT", "CH")),
        ("en", "shop.example.co.nz", ("US", "GB", "AU", "NZ")),
        ("pt", "example.uk", ("US", "BR", "PT", "GB")),
        ("", "", ("US",)),
        ("xx", "example.io", ("US",)),
        ("sr-Cyrl", "example.eu.", ("US", "RS")),
    ],
)
def test_regions_of_a_document(language: str, host: str, regions: tuple[str, ...]) -> None:
    assert regions_of(language, host, ("US",)) == regions
