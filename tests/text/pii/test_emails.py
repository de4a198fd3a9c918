"""E-mail addresses: what a local part and a domain may be."""

import pytest

from pipeline_tasks.text.pii.candidates import Limits
from pipeline_tasks.text.pii.emails import find_emails


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("write to jane@example.org.", ["jane@example.org"]),
        ("Jane.DOE+tag@Mail.Example.CO.UK", ["jane.doe+tag@mail.example.co.uk"]),
        ("'o'brien@firm.de", ["o'brien@firm.de"]),
        ("info@müller.de", ["info@müller.de"]),
        ("a@b.com.Thanks", ["a@b.com"]),
        ("x@y@example.org", ["y@example.org"]),
        ("a..b@example.org a.@example.org @example.org ...@example.org", []),
        ("logo@2x.png user@localhost a@-b.com a@b-.com", []),
        (f"{'a' * 65}@example.org", []),
        (f"a@{'b.' * 127}com", []),
    ],
)
def test_addresses(text: str, values: list[str]) -> None:
    assert [span.value for span in find_emails(text.encode(), Limits())] == values


def test_pseudonyms_are_kept_only_if_asked_for() -> None:
    text = b"user_0123456789ab@example.com"
    assert len(list(find_emails(text, Limits()))) == 1
    assert not list(find_emails(text, Limits(keep_pseudonyms=True)))
