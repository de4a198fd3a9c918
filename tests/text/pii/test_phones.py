"""Phone numbers: international, North American and national formats."""

import pytest

from pipeline_tasks.text.pii.candidates import Limits
from pipeline_tasks.text.pii.phones import find_phones, is_nanp_only


@pytest.mark.parametrize(
    ("text", "regions", "values"),
    [
        ("+44 20 7123 4567", (), ["+442071234567"]),
        ("+44 20 7123 4567 2026", (), ["+442071234567"]),
        ("(212) 555-2368 x12", ("US",), ["+12125552368"]),
        ("2125552368", ("US",), []),
        ("tel 2125552368", ("US",), ["+12125552368"]),
        ("$212-555-2368", ("US",), []),
        ("212-555-0123", ("US",), []),
        ("030 12345678", ("DE",), ["+493012345678"]),
        ("030 12345678", ("US",), []),
        ("Tel: 3012345678", ("DE",), ["+493012345678"]),
        ("1212-555-23689", ("US",), []),
    ],
)
def test_numbers(text: str, regions: tuple[str, ...], values: list[str]) -> None:
    assert [span.value for span in find_phones(text.encode(), Limits(regions))] == values


def test_regions_of_one_numbering_plan() -> None:
    assert is_nanp_only(("US", "CA", "JM"))
    assert not is_nanp_only(("US", "DE"))
    assert is_nanp_only(())
