"""Values are found in the forms in which people and programs write them, and tables and records are left alone."""

from typing import Any

import pyarrow as pa
import pytest

from pipeline_tasks.text.pii.candidates import Limits
from pipeline_tasks.text.pii.findings import find_pii
from pipeline_tasks.text.pii.kinds import KINDS
from pipeline_tasks.text.pii.suspects import suspects

ALL = frozenset(KINDS)
HUB = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
AWS = "AKIAQYLPMN5HHHFPZAM2"
COIN = "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2"
LINE = "MIIBVQIBADANBgkqhkiG9w0BAQEFAASCAT8wggE7"


def written_values(text: str, *regions: str, **limits: Any) -> list[tuple[str, str]]:
    """Return kind and value, as written, of what is found of all kinds."""
    body = text.encode()
    spans = find_pii(body, Limits(regions or ("US",), kinds=ALL, **limits))
    assert suspects(pa.array([text], pa.large_string()), ALL).to_pylist() == [True] or not spans
    return [(span.kind, body[span.start : span.end].decode()) for span in spans]


@pytest.mark.parametrize(
    "written",
    [
        "de89 3704 0044 0532 0130 00", "de89370400440532013000", "DE89.3704.0044.0532.0130.00", "DE89  3704  0044  0532  0130  00",
        "DE89\u20093704\u20090044\u20090532\u20090130\u200900", "DE89\u20113704\u20110044\u20110532\u20110130\u201100",
        "FR14 2004 1010 0505 0001 3M02 606", "fr14 2004 1010 0505 0001 3m02 606",
    ],
)  # fmt: skip
def test_accounts(written: str) -> None:
    assert written_values(f"pay to {written}, please") == [("iban", written)]


def test_letters_of_an_account_are_of_one_case_unless_it_is_called_one() -> None:
    assert written_values("Fr1420041010050500013m02606") == []
    assert written_values("IBAN Fr1420041010050500013m02606") == [("iban", "Fr1420041010050500013m02606")]


@pytest.mark.parametrize(
    ("field", "kind", "value"),
    [
        ("user_ssn=", "national_id", "536221234"),
        ('{"ssn_number": "', "national_id", "536221234"),
        ('{"socialSecurityNumber":"', "national_id", "536221234"),
        ("Tax ID: ", "national_id", "536-22-1234"),
        ("Employee ID ", "national_id", "536-22-1234"),
        ("steuer_id: ", "national_id", "86095742719"),
        ("Steuerliche Identifikationsnummer ", "national_id", "86 095 742 719"),
        ("nationalInsuranceNumber: ", "national_id", "AZ123456A"),
        ("NINO: ", "national_id", "az 123456 a"),
        ("cpf_cliente: ", "national_id", "52998224725"),
        ("CPF ", "national_id", "529 982 247 25"),
        ("bsn_nummer=", "national_id", "111222333"),
        ("dni ", "national_id", "12345678z"),
        ("公民身份号码 ", "national_id", "110105 19491231 002X"),
        ("number ", "national_id", "536\u201122\u20111234"),
        ('{"cardNumber": "', "card", "4222222222222"),
        ("card_number=", "card", "4222222222222"),
        ("by ", "card", "4111.1111.1111.1111"),
        ("https://pay.example.com/?card=", "card", "4111111111111111"),
        ("https://example.com/p?a=1&user_ssn=", "national_id", "536221234"),
        ("user_dob=", "birth_date", "1976-06-17"),
        ('"gps": {"lat": ', "gps", '52.520008, "lon": 13.404954'),
    ],
)
def test_values_of_fields(field: str, kind: str, value: str) -> None:
    assert written_values(f"{field}{value} ") == [(kind, value)]


@pytest.mark.parametrize(
    "text",
    [
        "user_id=4111111111111111", '"orderId": "4111111111111111"', "https://example.com/p?id=4111111111111111", "default_rng(348932549825235)",
        "doi:10.1137/12345678Z", "https://example.com/?page=536-22-1234",
        "0 0 4537 4537 4537 4392 - -", "542E 542F 5430 5431 5432 5433", "5414 5415 5416 5417 20BBF",
        "5410 5411 5412 5413\n5414 5415 5416 5417\n", "5414 5415 5416 5417\r\n5418 5419 5420 5422",
        "7c:fb:6c:9d:0c:a5:e1:96", "7c:fb:\n    6c:9d:0c:a5:e1:96\n", "6c:9d:0c:a5:e1:96:7c:fb",
    ],
)  # fmt: skip
def test_records_tables_and_fingerprints_are_left_alone(text: str) -> None:
    assert [kind for kind, _ in written_values(text, "US", "ES") if kind in ("card", "national_id", "mac")] == []


def test_a_list_of_cards_is_no_table() -> None:
    cards = ["4111 1111 1111 1111", "5555 5555 5555 4444", "4012 8888 8888 1881"]
    assert written_values("\n".join(cards)) == [("card", card) for card in cards]
    assert written_values("mac: 00:1b:63:84:45:e6.") == [("mac", "00:1b:63:84:45:e6")]


@pytest.mark.parametrize(
    "frame",
    ["-{}", "_{}_", "__{}__", "key-{}", "x_{}", '"line\\n{}"', '"\\t{}\\n"', "t%3D{}", '"a\\u003d{}"', "?k={}&x"],
)
@pytest.mark.parametrize("token", [HUB, AWS])
def test_a_token_inside_a_word_a_string_or_a_web_address(token: str, frame: str) -> None:
    assert written_values(frame.format(token)) == [("credential", token)]


@pytest.mark.parametrize("frame", ["-{}", "_{}_", "bitcoin:{}?amount=1"])
def test_a_wallet_in_a_list_or_emphasis(frame: str) -> None:
    assert written_values(frame.format(COIN)) == [("crypto", COIN)]


@pytest.mark.parametrize(
    "key",
    [
        f"-----BEGIN RSA PRIVATE KEY-----\n> {LINE}\n> {LINE}",
        f"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,ABCD0123\n\n{LINE}",
        f'-----BEGIN PRIVATE KEY-----\\n" +\n  "{LINE}\\n" +\n  "{LINE}',
        f"-----BEGIN PRIVATE KEY-----\n# {LINE}",
    ],
)
def test_a_cut_key_that_is_quoted_or_has_headers(key: str) -> None:
    assert written_values(key) == [("credential", key)]


@pytest.mark.parametrize(
    ("user", "host"),
    [("jane:s3cret@example.org", ""), ("jane:s3!cret@db.example.org", ":5432/x"), ("jane:s3cret", "@10.0.0.1/x")],
)
def test_user_and_password_in_a_web_address(user: str, host: str) -> None:
    assert written_values(f"at https://{user}{host} now") == [("email", user)]


def test_a_pseudonym_with_the_name_of_a_key_is_kept() -> None:
    assert written_values("user_0123456789ab@2026.example.com") != []
    assert written_values("user_0123456789ab@2026.example.com", keep_pseudonyms=True) == []
