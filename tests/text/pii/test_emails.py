"""E-mail addresses: what a local part and a domain may be, and that an address is found whole."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.pii.candidates import Limits
from pipeline_tasks.text.pii.emails import find_emails
from tests.text.pii.plain import email_around


def texts_of(text: str) -> list[str]:
    body = text.encode()
    return [body[span.start : span.end].decode() for span in find_emails(body, Limits())]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("write to jane@example.org.", ["jane@example.org"]),
        ("Jane.DOE+tag@Mail.Example.CO.UK", ["jane.doe+tag@mail.example.co.uk"]),
        ("'o'brien@firm.de", ["o'brien@firm.de"]),
        ("info@müller.de", ["info@müller.de"]),
        ("x@y@example.org", ["y@example.org"]),
        ("logo@2x.png user@localhost a@-b.com a@b-.com react@18.2.0 pkg@1.2.3-rc.4", []),
        ("@example.org ...@example.org", []),
        (f"{'a' * 65}@example.org", []),
        (f"a@{'b.' * 127}com", []),
        ("jane%40example.org jane%2540example.org", ["jane@example.org", "jane@example.org"]),
    ],
)
def test_values(text: str, values: list[str]) -> None:
    assert [span.value for span in find_emails(text.encode(), Limits())] == values


@pytest.mark.parametrize(
    "address",
    [
        "jane@nic.in", "jane@gov.uk", "jane@uk.com", "jane@iki.fi", "jane@github.io",  # mail under a public suffix
        "müller@firma.de", "иван@почта.рф", "josé.núñez@correo.es", "user@例え.jp", "jane@xn--mller-kva.de",
        "_jane@example.org", "__init__@example.org", "jane_@example.org",
        "jane+news@example.org", "tom&jerry@example.org", "o\u2019brien@example.org", "bounce+jane=example.org@list.org",
        "a..b@docomo.ne.jp", "jane.@docomo.ne.jp", '"jane doe"@example.org', "jane@[192.0.2.1]", "jane\uff20example.org",
        "jane [at] example [dot] org", "jane(at)example.org", "jane at example dot org",
    ],
)  # fmt: skip
@pytest.mark.parametrize("frame", ["{}", "to {}.", "<{}>", "mail: {}, thanks", "({})", "{} oder"])
def test_whole_address(address: str, frame: str) -> None:
    assert texts_of(frame.format(address)) == [address]


@pytest.mark.parametrize(
    "text",
    [
        "请联系邮箱jane@example.org或者", "메일jane@example.org으로", "jane@example.org-", "jane@example.orgTel: 1", "Jane.....jane@example.org",
        "jane@example.org.Thanks", "email=jane@example.org", "jane@example.org...", "**jane@example.org**", "jane@example.org123",
    ],
)  # fmt: skip
def test_words_that_touch_an_address(text: str) -> None:
    assert texts_of(text) == ["jane@example.org"]


def test_a_place_is_no_address() -> None:
    assert not texts_of("meet me at example.org, look at things, at example dot")


LOCAL = st.text(string.ascii_letters + string.digits + "_+", min_size=1, max_size=12)
DOMAIN = st.builds(
    "{}.{}".format,
    st.text(string.ascii_lowercase, min_size=1, max_size=9),
    st.sampled_from(["org", "de", "co.uk", "in"]),
)
AROUND = st.text(st.sampled_from(" \n,;:()<>[]\"'!?…“”\u00a0中文"), max_size=6)


@given(LOCAL, DOMAIN, AROUND, AROUND)
def test_agrees_with_a_plain_reference(local: str, domain: str, ahead: str, behind: str) -> None:
    text = f"{ahead}{local}@{domain}{behind}"
    assert texts_of(text) == email_around(text)
