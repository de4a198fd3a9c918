"""Writes the made-up cases of `tests/text/pii/made_up.jsonl`: values with check digits that python-stdnum accepts.

    .refinery/peers-pii/bin/python benchmarks/pii_values.py > tests/text/pii/made_up.jsonl

The check digits are those of another author, so that a rule that is wrong in both places is unlikely. Every case has
one value in a sentence of its language, or a value whose check digit was changed, or something that only looks alike.
All are made up: digits are drawn at random from a fixed seed.
"""

# ruff: noqa: E501, RUF001, S311, PLR2004, D103 -- sentences are one to a case, and draws need no secret
import json
import random
import string
import sys
from collections.abc import Callable, Iterator
from typing import Any

from stdnum import bitcoin, iban, luhn
from stdnum.br import cpf
from stdnum.cn import ric
from stdnum.de import idnr
from stdnum.es import dni, nie
from stdnum.fr import nir
from stdnum.in_ import aadhaar
from stdnum.it import codicefiscale
from stdnum.nl import bsn

TIMES = 12
RNG = random.Random(20261126)

SENTENCES = {
    "card": [
        ("en", "Please charge my credit card {} today."), ("de", "Meine Kreditkarte: {} ist verloren."),
        ("fr", "Ma carte bancaire {} a été volée."), ("es", "Mi tarjeta de crédito es {}, gracias."),
        ("ru", "Номер карты {} прошу заблокировать."), ("zh", "我的信用卡号码是{}。"), ("en", "Visa {} exp 12/29"),
    ],
    "iban": [
        ("en", "Please transfer to {} by Friday."), ("de", "Unsere Bankverbindung: IBAN {}, danke."),
        ("fr", "Virement sur le compte {} svp"), ("nl", "Rekening {} t.n.v. J. Jansen"), ("it", "bonifico su {}."),
    ],
    "us": [("en", "My SSN is {}."), ("en", "Social Security Number: {}"), ("en", "SSN#{} on file")],
    "gb": [("en", "My NI number is {}."), ("en", "National Insurance number: {}"), ("en", "NINO {} was sent")],
    "de": [("de", "Meine Steuer-ID: {}."), ("de", "Steueridentifikationsnummer {}"), ("de", "IdNr. {} liegt vor")],
    "fr": [("fr", "Mon numéro de sécurité sociale est {}."), ("fr", "NIR : {}"), ("fr", "Sécu {} (assuré)")],
    "es": [("es", "Con DNI {} en Madrid."), ("es", "NIF: {}"), ("es", "documento nacional de identidad {}")],
    "nie": [("es", "Con NIE {} en Madrid."), ("es", "N.I.E. {}"), ("es", "documento de identidad {}")],
    "it": [("it", "Il mio codice fiscale è {}."), ("it", "C.F. {}"), ("it", "nato a Roma, {} residente")],
    "nl": [("nl", "Mijn BSN is {}."), ("nl", "burgerservicenummer: {}"), ("nl", "BSN {} van de patiënt")],
    "br": [("pt", "Meu CPF é {}."), ("pt", "CPF nº {}"), ("pt", "inscrito no CPF sob o {} e")],
    "in": [("en", "My Aadhaar number is {}."), ("hi", "मेरा आधार नंबर {} है"), ("en", "UIDAI / Aadhaar: {}")],
    "cn": [("zh", "身份证号码：{}。"), ("zh", "公民身份号码{}"), ("en", "Chinese resident ID card {} was shown.")],
    "credential": [("en", "export TOKEN={}"), ("en", 'api_key: "{}"'), ("de", "Der Schlüssel {} ist gültig.")],
    "crypto": [("en", "Donate to {} please."), ("de", "Meine Wallet {} ist leer"), ("en", "BTC: {}")],
    "mac": [("en", "The MAC address is {}."), ("de", "Gerät {} im Netz"), ("en", "link/ether {} brd")],
    "gps": [("en", "GPS: {}"), ("en", "my current location is {} now"), ("de", "mein Standort: {}")],
    "birth_date": [],
}  # fmt: skip

BIRTHS = [
    ("en", "Date of birth: ", "17/06/1976", ", male"), ("en", "DOB: ", "1976-06-17", ""), ("en", "DOB ", "06/17/76", " SSN none"),
    ("en", "Birthdate: ", "June 17, 1976", "."), ("en", "I was born on ", "17 June 1976", "."), ("en", "D.O.B. ", "17-06-1976", ""),
    ("de", "Geburtsdatum: ", "17.06.1976", " in Ulm"), ("de", "Geburtstag: ", "17. Juni 1976", ""), ("fr", "Date de naissance : ", "17/06/1976", "."),
    ("fr", "Né(e) le : ", "17/06/1976", ""), ("fr", "Je suis né le ", "17 juin 1976", " à Lyon"), ("es", "Fecha de nacimiento: ", "17/06/1976", ""), ("it", "Data di nascita: ", "17/06/1976", ""),
    ("nl", "Geboortedatum: ", "17-06-1976", ""), ("pt", "Data de nascimento: ", "17/06/1976", ""), ("pl", "Data urodzenia: ", "17.06.1976", ""),
    ("ru", "Дата рождения: ", "17.06.1976", ""), ("zh", "出生日期：", "1976年6月17日", ""), ("ja", "生年月日：", "1976年6月17日", ""),
    ("sv", "Födelsedatum: ", "1976-06-17", ""), ("en", "date_of_birth: ", "1976-06-17", ""),
]  # fmt: skip

ALIKE = [
    ("en", "Order 4111111111111111 has shipped."), ("en", "https://example.org/status/4556208319144605 is a page"),
    ("en", "ISBN 978-0-306-40615-7 and ISSN 0378-5955"), ("en", "timestamp 1718900000000 and 20240101123000"),
    ("en", "pi is 3.14159265358979323846, e 2.71828182845904523536"), ("en", "EC 1.1.1.1 and EC 3.4.21.62 are enzymes"),
    ("en", "OID 1.3.6.1.4.1.311.21.20 is Microsoft's"), ("en", "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 fixes it"),
    ("en", "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"), ("en", "7f0bcd25-a55d-453a-8046-2127365000ab failed"),
    ("en", "CAS 7732-18-5 is water, 64-17-5 ethanol"), ("en", "EAN 4006381333931, UPC 036000291452"), ("en", "IMEI 490154203237518"),
    ("en", "DOI 10.1016/j.cell.2019.01.001, PMID 31040420"), ("en", "ORCID 0000-0002-1825-0097"), ("en", "section 1.2.3.4, version 4.8.15.16"),
    ("en", "US Patent EP123456A and part AB123456C"), ("en", "RGB 255 255 255 and 123 456 789 items"), ("en", "$1,234,567,890.12 or 1 234 567 890"),
    ("en", "scores 123 45 6789 of 999 99 9999"), ("en", "Paris lies at 48.8566, 2.3522 on the Seine."), ("en", "52.520008, 13.404954 is in Berlin"),
    ("en", "Ada Lovelace (born 10 December 1815) was a mathematician"), ("de", "Goethe, geboren am 28. August 1749 in Frankfurt"),
    ("en", "some-very-long-slug-of-a-page-2026-with-words"), ("en", "the_quick_brown_fox_jumps_over_13_dogs"), ("en", "AKIAIOSFODNN7EXAMPLE is in the manual"),
    ("en", "-----BEGIN PRIVATE KEY----- begins such a file"), ("en", "0x0000000000000000000000000000000000000000"), ("en", "00:00:00:00:00:00 and ff:ff:ff:ff:ff:ff"),
    ("en", "12:30:45:12:30:45 and 2026-11-20 12:30:45"), ("de", "Kundennummer 123456782, Bestellnummer 86095742719"), ("pt", "CNPJ 11.222.333/0001-81 da empresa"),
    ("es", "CIF A58818501 de la empresa"), ("fr", "SIRET 732 829 320 00074"), ("en", "a 3x4 grid, 1920x1080 px, ISO 8601:2004"),
    ("en", "She was born on 10 December 1915 in London"), ("de", "Er ist geboren am 28. August 1949 in Ulm"),
    ("en", "The location of the summit is 45.83260, 6.86520"), ("fr", "née le 3 mai 1951 à Lyon, elle écrit"),
    ("en", "HEAD is now at 484121a, was at 1234567b"), ("en", "XR2000 and A380-800 and B737 NG"), ("en", "Postal 10115 Berlin, SW1A 1AA London"), ("en", "SOA serial 2024010112, TTL 604800"),
]  # fmt: skip


def digits(count: int) -> str:
    return "".join(RNG.choice(string.digits) for _ in range(count))


def until(draw: Callable[[], str], accepts: Callable[[str], bool]) -> str:
    """Return the first draw that is accepted: of eleven or a hundred, one is."""
    while not accepts(value := draw()):
        pass
    return value


def card() -> str:
    prefix, size = RNG.choice(
        [
            ("4", 16),
            ("51", 16),
            ("55", 16),
            ("2221", 16),
            ("37", 15),
            ("6011", 16),
            ("3530", 16),
            ("36", 14),
            ("62", 16),
        ]
    )
    body = prefix + digits(size - len(prefix) - 1)
    value = body + str(luhn.calc_check_digit(body))
    if size == 16 and RNG.random() < 0.5:
        return RNG.choice(" -").join(value[at : at + 4] for at in range(0, 16, 4))
    return f"{value[:4]} {value[4:10]} {value[10:]}" if size == 15 else value


def account() -> str:
    country, body = RNG.choice(
        [
            ("DE", digits(18)),
            ("FR", digits(10) + "ABC" + digits(10)),
            ("GB", "NWBK" + digits(14)),
            ("NL", "ABNA" + digits(10)),
            ("PL", digits(24)),
            ("AT", digits(16)),
        ]
    )
    value = country + iban.calc_check_digits(f"{country}00{body}") + body
    return " ".join(value[at : at + 4] for at in range(0, len(value), 4)) if RNG.random() < 0.5 else value


def ssn() -> str:
    area = RNG.choice([*range(1, 666), *range(667, 900)])
    return f"{area:03}-{RNG.randrange(1, 100):02}-{RNG.randrange(1, 10000):04}"


def nino() -> str:
    value = RNG.choice(["AB", "CE", "HK", "JZ", "PR", "SX", "YZ"]) + digits(6) + RNG.choice("ABCD")
    return f"{value[:2]} {value[2:4]} {value[4:6]} {value[6:8]} {value[8]}" if RNG.random() < 0.5 else value


def resident() -> str:
    return until(
        lambda: (
            f"1101{RNG.randrange(1, 20):02}{RNG.randrange(1950, 2010)}{RNG.randrange(1, 13):02}{RNG.randrange(1, 29):02}{digits(3)}"
            + RNG.choice("0123456789X")
        ),
        ric.is_valid,
    )


def french() -> str:
    body = f"{RNG.choice('12')}{digits(2)}{RNG.randrange(1, 13):02}{RNG.randrange(1, 96):02}{RNG.randrange(1, 900):03}{RNG.randrange(1, 900):03}"
    value = body + nir.calc_check_digits(body)
    parts = (value[0], value[1:3], value[3:5], value[5:7], value[7:10], value[10:13], value[13:])
    return " ".join(parts) if RNG.random() < 0.7 else value


def italian() -> str:
    letters = "".join(RNG.choice("BCDFGHLMNPRSTVZ") for _ in range(6))
    body = f"{letters}{digits(2)}{RNG.choice('ABCDEHLMPRST')}{RNG.randrange(1, 29):02}H{digits(3)}"
    return f"{body}{codicefiscale.calc_check_digit(body)}"


def parted(draw: Callable[[], str], form: str) -> Callable[[], str]:
    def write() -> str:
        value = iter(draw())
        return "".join(next(value) if sign == "9" else sign for sign in form)

    return write


def token() -> str:
    letters = string.ascii_letters + string.digits

    def some(count: int, of: str = letters) -> str:
        return "".join(RNG.choice(of) for _ in range(count))

    return RNG.choice([
        "AKIA" + some(16, string.ascii_uppercase + "234567"), "ghp_" + some(36), "github_pat_" + some(22) + "_" + some(59), "glpat-" + some(20),
        "xoxb-" + some(12, string.digits) + "-" + some(24), "AIza" + some(35), "sk_" + "live_" + some(24), "npm_" + some(36),
        "eyJ" + some(33) + ".eyJ" + some(50) + "." + some(43), "SG." + some(22) + "." + some(43),
    ])  # fmt: skip


def wallet() -> str:
    alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
    number = int.from_bytes(bytes([0]) + RNG.randbytes(20), "big").to_bytes(21, "big")
    import hashlib

    whole = int.from_bytes(number + hashlib.sha256(hashlib.sha256(number).digest()).digest()[:4], "big")
    value = ""
    while whole:
        whole, rest = divmod(whole, 58)
        value = alphabet[rest] + value
    value = "1" + value
    assert bitcoin.is_valid(value)
    return value


def hardware() -> str:
    sign = RNG.choice(":-")
    return sign.join(f"{byte:02x}" for byte in (RNG.randrange(4, 255, 4), *RNG.randbytes(5)))


def place() -> str:
    return f"{RNG.uniform(-89, 89):.6f}, {RNG.uniform(-179, 179):.6f}"


DRAWS: dict[str, tuple[str, Callable[[], str]]] = {
    "card": ("card", card), "iban": ("iban", account), "us": ("national_id", ssn), "gb": ("national_id", nino),
    "de": ("national_id", lambda: until(lambda: str(RNG.randrange(10**10, 10**11)), idnr.is_valid)), "fr": ("national_id", french),
    "es": ("national_id", lambda: until(lambda: digits(8) + RNG.choice(string.ascii_uppercase), dni.is_valid)),
    "nie": ("national_id", lambda: until(lambda: RNG.choice("XYZ") + digits(7) + RNG.choice(string.ascii_uppercase), nie.is_valid)),
    "it": ("national_id", italian), "nl": ("national_id", lambda: until(lambda: digits(9), bsn.is_valid)),
    "br": ("national_id", parted(lambda: until(lambda: digits(11), cpf.is_valid), "999.999.999-99")),
    "in": ("national_id", parted(lambda: until(lambda: digits(12), aadhaar.is_valid), "9999 9999 9999")), "cn": ("national_id", resident),
    "credential": ("credential", token), "crypto": ("crypto", wallet), "mac": ("mac", hardware), "gps": ("gps", place),
}  # fmt: skip

UNCHECKED = ("us", "gb", "credential", "mac", "gps")
"""Kinds without check digits: none of their values is wrong by one digit."""


def wrong(value: str) -> str:
    """Return a value with one digit replaced by another."""
    at = RNG.choice([place for place, sign in enumerate(value) if sign.isdigit() and place > 3])
    return value[:at] + str((int(value[at]) + RNG.randrange(1, 9)) % 10) + value[at + 1 :]


def cases() -> Iterator[dict[str, object]]:
    for rule, (kind, draw) in DRAWS.items():
        for time in range(TIMES):
            language, sentence = SENTENCES[rule][time % len(SENTENCES[rule])]
            value = draw()
            start = sentence.index("{}")
            yield {
                "lang": language,
                "text": sentence.format(value),
                "rule": rule,
                "spans": [[kind, start, start + len(value)]],
            }
            if rule not in UNCHECKED:
                yield {"lang": language, "text": sentence.format(wrong(value)), "rule": rule, "spans": []}
    for language, ahead, date, behind in BIRTHS:
        yield {
            "lang": language,
            "text": f"{ahead}{date}{behind}",
            "rule": "birth_date",
            "spans": [["birth_date", len(ahead), len(ahead + date)]],
        }
    for language, text in ALIKE:
        yield {"lang": language, "text": text, "rule": "alike", "spans": []}


def line_of(case: dict[str, Any]) -> str:
    """Return a case as a line; the beginning of a made-up key is escaped, or scanners of leaks would report it."""
    line = json.dumps(case, ensure_ascii=False)
    if case["rule"] != "credential":
        return line
    start = case["spans"][0][1]
    first = case["text"][start : start + 3]
    return line.replace(first, "".join(f"\\u{ord(sign):04x}" for sign in first), 1)


if __name__ == "__main__":
    for case in cases():
        sys.stdout.write(line_of(case) + "\n")
