"""Figures are no persons: pages of figures keep theirs, and written numbers of the document's country go."""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

import phonenumbers
import pytest
from phonenumbers import PhoneNumberFormat, PhoneNumberType

from pipeline_tasks.text.pii.candidates import Limits
from pipeline_tasks.text.pii.findings import find_pii
from pipeline_tasks.text.pii.phones import find_phones
from pipeline_tasks.text.pii.regions import regions_of

PAGES = Path(__file__).with_name("figures.jsonl")
"""Lines of tables, logs, timetables, prices, measurements and programs; each `#` becomes a digit."""

LINES = 30
MOST_FALSE = 1 / 10_000
LEAST_WRITTEN = 0.95
REGIONS = (
    "AR AT AU BE BG BR CA CH CL CN CO CZ DE DK EE ES FI FR GB GR HK HR HU IE IL IN IT JP KR LT LV MX NL NO NZ PL PT RO RS"
    " RU SE SI SK TR TW UA US ZA"
)


def pages() -> Iterator[tuple[str, str]]:
    """Yield the language and the text of each page; digits are drawn by a fixed seed."""
    draw = random.Random(20)
    for page in map(json.loads, PAGES.read_text(encoding="utf-8").splitlines()):
        lines = (re.sub("#", lambda _: draw.choice("0123456789"), page["line"]) for _ in range(LINES))
        yield page["lang"], "\n".join(lines)


def test_pages_of_figures_keep_their_figures() -> None:
    figures, false = 0, []
    for language, text in pages():
        body = text.encode()
        figures += len(re.findall(r"\d[\d.,:]*", text))
        spans = find_pii(body, Limits(regions_of(language, "", ("US",))))
        false += [(language, body[max(span.start - 20, 0) : span.end + 10].decode(errors="ignore")) for span in spans]
    assert figures > 20_000
    assert len(false) <= MOST_FALSE * figures, false


@pytest.mark.parametrize(
    ("text", "regions"),
    [
        ("took 5551234567 ms", ("US",)),
        ("Hotel 212 736 5000, Titel 030 1234 und recall 2127365000", ("US", "DE")),
        ("F\t1.3244637524\n", ("GR", "US")),
        ("Abfahrt 08.30 09.15 10.00 10.45", ("DE", "AT")),
        ("BIBIB 2127365000", ("US",)),
        ("Ludno\u015b\u0107: 512 345 678", ("PL",)),
        ("St\u00f8rrelser: 36 38 40 42", ("DK",)),
        ("123456.4567 and 212.7365000", ("US",)),
    ],
)
def test_a_figure_without_evidence_is_kept(text: str, regions: tuple[str, ...]) -> None:
    assert list(find_phones(text.encode(), Limits(regions))) == []


def written(region: str) -> Iterator[str]:
    """Yield how numbers of a country are written in it: as its plan says, with other marks, and with fewer blanks."""
    for kind in (PhoneNumberType.FIXED_LINE, PhoneNumberType.MOBILE):
        number = phonenumbers.example_number_for_type(region, kind)
        form = phonenumbers.format_number(number, PhoneNumberFormat.NATIONAL)
        area, *rest = re.split("[ -]", form)
        yield form
        if "(" not in form:
            yield form.replace(" ", "-")
        if len(rest) > 1:
            yield f"{area} {''.join(rest)}"


@pytest.mark.parametrize(
    "frame", ["Anna Berg \u00b7 {} \u00b7 Hafen 3", "Anna Berg\n{}\nHafen 3", "Anna Berg, {}, a@b.org"]
)
def test_numbers_of_the_own_country_are_found_without_a_word(frame: str) -> None:
    missed, total = [], 0
    for region in REGIONS.split():
        host = f"shop.example.{'uk' if region == 'GB' else region.lower()}"
        for form in dict.fromkeys(written(region)):
            body = frame.format(form).encode()
            spans = list(find_phones(body, Limits(regions_of("", host, ("US",)))))
            total += 1
            missed += [] if [body[s.start : s.end].decode() for s in spans] == [form] else [(region, form)]
    assert total > 200
    assert len(missed) <= (1 - LEAST_WRITTEN) * total, missed


@pytest.mark.parametrize(
    "line", ["20.11.2026\n", "1234 5678 9012 ", "030 123 456 789\n", "tel 12 34 56\n", "1.2345678901 "]
)
def test_more_figures_ask_libphonenumber_nothing_new(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(("DE", "FR", "US"))
    list(find_phones(line.encode() * 500, limits))
    asked: list[object] = []
    monkeypatch.setattr(phonenumbers, "parse", asked.append)
    list(find_phones(line.encode() * 1_000, limits))
    assert asked == []


@pytest.mark.parametrize(
    ("text", "regions"),
    [
        ("20.11.2026\n", ("DE",)),
        ("1.2345678901 ", ("US",)),
        ("08.30 09.15 10.00\n", ("DE",)),
        ("212.7365000\n", ("US",)),
    ],
)
def test_libphonenumber_is_asked_about_no_figure(
    text: str, regions: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(phonenumbers, "parse", None)
    assert list(find_phones(text.encode() * 50, Limits(regions))) == []
