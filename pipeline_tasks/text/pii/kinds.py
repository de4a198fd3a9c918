"""The table of the kinds of personal data: what each is called, replaced by, found by, and checked with in every run.

A new kind is an entry here, a module with its forms, and a test. Columns, redactions, facts of gates, commands and
reports follow from the table.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

Kind = Literal[
    "email", "phone", "ip", "card", "iban", "national_id", "credential", "crypto", "mac", "gps", "birth_date",
    "name", "address",
]  # fmt: skip

Action = Literal["redact", "pseudonymize", "drop", "keep"]
"""What to do about a finding; `keep` does not look for any."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One kind of personal data.

    `finders` (module.function of this room) read a whole text; `forms` names a module of this room whose `FORMS` say
    how its values are written. `is_number` says how the place of a value reads to its neighbors: as a digit, or else as
    a letter. `by_default` is whether it is looked for without a word in the recipe. `canaries` are made-up texts in
    each of which exactly one value of the kind has to be found, or a run's gate refuses. What a model finds that a
    recipe names (`by_model`) has neither finders, nor forms, nor canaries: no model finds every value.
    """

    placeholder: str
    says: str
    canaries: tuple[str, ...]
    finders: tuple[str, ...] = ()
    forms: str = ""
    is_number: bool = False
    by_default: bool = True
    by_model: bool = False


TABLE: Mapping[Kind, Entry] = MappingProxyType(
    {
        "email": Entry(
            "<EMAIL>",
            "e-mail addresses",
            ("Write to jane.doe@mail.example.org.", "or to jane (at) example dot org", "or jane.doe AT example.org"),
            finders=("emails.find_emails",),
        ),
        "phone": Entry(
            "<PHONE>",
            "telephone numbers",
            ("Call (212) 736-5000 now", "or +49 30 1234567."),
            finders=("phones.find_phones",),
            is_number=True,
        ),
        "ip": Entry(
            "<IP>",
            "IP addresses",
            ("from 69.196.0.85 on", "at 2400:c401::5054:ff:fe1b:b031 too"),
            finders=("ip_addresses.find_ipv4s", "ip_addresses.find_ipv6s"),
            is_number=True,
        ),
        "card": Entry(
            "<CARD>",
            "numbers of payment cards",
            ("Card 4111 1111 1111 1111, please", "Amex 3782-822463-10005", "my card 5555555555554444 is lost"),
            forms="cards",
        ),
        "iban": Entry(
            "<IBAN>",
            "bank accounts (IBAN)",
            ("IBAN DE89 3704 0044 0532 0130 00", "to GB29NWBK60161331926819 please"),
            forms="ibans",
        ),
        "national_id": Entry(
            "<NATIONAL_ID>",
            "numbers of persons that states give",
            (
                "SSN: 536-22-1234",
                "NI number AZ 12 34 56 A",
                "Steuer-ID 86 095 742 719",
                "n° de sécurité sociale 1 85 05 78 006 084 91",
                "DNI 12345678Z",
                "NIE X1234567L",
                "CF RSSMRA85T10A562S",
                "BSN 111222333",
                "CPF 529.982.247-25",
                "Aadhaar 2341 2341 2346",
                "公民身份号码11010519491231002X",
            ),
            forms="national_ids",
        ),
        "credential": Entry(
            "<CREDENTIAL>",
            "API keys, access tokens and private keys",
            (
                "key AKIAQYLPMN5HHHFPZAM2",
                "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
                "-----BEGIN PRIVATE KEY-----\nMIIBVQIBADANBgkqhkiG9w0BAQEFAASCAT8wggE7\n-----END PRIVATE KEY-----",
            ),
            forms="credentials",
        ),
        "crypto": Entry(
            "<WALLET>",
            "addresses of Bitcoin and Ethereum",
            (
                "to 1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2",
                "to bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
                "to 0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
            ),
            forms="wallets",
            by_default=False,
        ),
        "mac": Entry(
            "<MAC>",
            "hardware (MAC) addresses",
            ("MAC: 00:1b:63:84:45:e6", "at 00-1B-63-84-45-E6"),
            forms="hardware_addresses",
            by_default=False,
        ),
        "gps": Entry(
            "<GPS>",
            "coordinates that a word for a place of a person or a device announces",
            ("my location: 52.520008, 13.404954", "GPS 52°31'12.0\"N 13°24'18.0\"E"),
            forms="coordinates",
            by_default=False,
        ),
        "birth_date": Entry(
            "<BIRTH_DATE>",
            "dates of birth behind the label of a form",
            ("Date of birth: 17/06/1976", "Geburtsdatum: 4. Juni 1976", "出生日期: 1980年3月12日"),
            forms="birth_dates",
            by_default=False,
        ),
        "name": Entry("<NAME>", "names of persons, by a model", (), by_default=False, by_model=True),
        "address": Entry("<ADDRESS>", "postal addresses, by a model", (), by_default=False, by_model=True),
    }
)
"""By kind, in the order of columns and commands."""

KINDS: tuple[Kind, ...] = get_args(Kind)
DEFAULT_KINDS = frozenset(kind for kind in KINDS if TABLE[kind].by_default)
PLACEHOLDERS: Mapping[Kind, bytes] = MappingProxyType({kind: TABLE[kind].placeholder.encode() for kind in KINDS})
COUNTS = tuple(f"pii_{kind}" for kind in KINDS)
"""Columns that count the findings of a kind in a document, null where it is not looked for."""

BY_MODEL = frozenset(kind for kind in KINDS if TABLE[kind].by_model)

FOUND_IN_ORDER: tuple[tuple[Kind, ...], ...] = (
    ("email",),
    ("ip",),
    tuple(k for k in KINDS if TABLE[k].forms),
    ("phone",),
)
"""What one group has found is masked for those after it. What a model finds counts where none of these is."""
