"""Dates of birth behind the label of a form or in the first person; not those of biographies (`born 4 June 1976`)."""

from pipeline_tasks.text.pii.candidates import is_named, pattern
from pipeline_tasks.text.pii.forms import Forms, Found, Place

LABEL = (
    r"(?i)(?:\bdate[ _\-]?of[ _\-]?birth|\bbirth[ _\-]?date|\bd\.?o\.?b\b\.?|\bbirthday|\bgeburts(?:datum|tag)"
    r"|\bgeb\.-?dat\w*|\bdate de naissance"
    r"|\bfecha de nac\w*|\bdata di nascita|\bdata de nasc\w*|\bgeboortedatum|\bf\x{f6}delsedatum"
    r"|\bf\x{f8}dsels?dato|\bdata urodzenia"
    r"|\bdatum narozen\x{ed}|\bdo\x{11f}um tarihi"
    r"|\x{434}\x{430}\x{442}\x{430} \x{440}\x{43e}\x{436}\x{434}\x{435}\x{43d}\x{438}\x{44f}"
    r"|\x{434}\x{430}\x{442}\x{430} \x{43d}\x{430}\x{440}\x{43e}\x{434}\x{436}\x{435}\x{43d}\x{43d}\x{44f}"
    r"|\x{51fa}\x{751f}(?:\x{65e5}\x{671f}|\x{5e74}\x{6708}\x{65e5})|\x{751f}\x{5e74}\x{6708}\x{65e5}"
    r"|\x{c0dd}\x{b144}\x{c6d4}\x{c77c})"
    r"(?: is| was| ist| est| es|\s?\([^()\n]{1,20}\))?[\s:=\"'|\x{ff1a}\x{b7}.\-]{1,4}$"
    r"|(?i)\bi(?: was|'m| am) born(?: on)?(?: the)? $|\bich bin am $|\b(?:geboren am|n\x{e9}\(?e?\)? le) ?: ?$"
    r"|\bje suis n\x{e9}e? le $"
    r"|\bnac\x{ed} el $"
)
"""What announces it, in the languages of the packs."""

_MONTH = (
    r"(?i:jan|feb|m[a\x{e4}]r|apr|ma[iy]|jui?n|jul|au[g\x{fb}]|sep|o[ck]t|nov|de[cz]|ao\x{fb}|f\x{e9}v|avr|ene|abr"
    r"|ago|dic|gen|mag|giu|lug|set|ott|fev|out|dez)\pL{0,8}\.?"
)
_YEAR = r"(?:19|20)\d\d"
DATES = (
    rf"^\d{{1,2}}(?:st|nd|rd|th|\.|er|\x{{ba}})?[ \-](?:de |of )?{_MONTH}[ \-,]{{1,2}}(?:de )?{_YEAR}\b",
    rf"^\d{{1,2}}(?:st|nd|rd|th)?,? {_YEAR}\b",
    r"^\d{1,2}[./\- ]{1,2}\d{1,2}[./\- ]{1,2}(?:19|20)?\d\d\b",
    rf"^{_YEAR}[./\-]\d{{1,2}}[./\-]\d{{1,2}}\b",
    rf"^{_YEAR}\s?[\x{{5e74}}\x{{b144}}]\s?\d{{1,2}}\s?[\x{{6708}}\x{{c6d4}}]\s?\d{{1,2}}\s?[\x{{65e5}}\x{{c77c}}]",
)
LABEL_BEHIND = r"(?i)^,? (?:is|was) (?:my|his|her) (?:birthday|birth ?date|date of birth)\b"
MONTH_AHEAD = rf"(?:{_MONTH}) $"
_LONGEST = 48


def accepted(place: Place) -> Found | None:
    """Return a date that a label announces, with the name of its month ahead."""
    text, start, *_ = place
    month = pattern(MONTH_AHEAD).search(text[max(start - 16, 0) : start])
    begin = start - len(month.group()) if month else start
    for expression in DATES:
        match = pattern(expression).search(text[start : start + _LONGEST])
        if match and (is_named(text, begin, LABEL) or _is_labeled(text[start + match.end() :][:_LONGEST])):
            return Found(begin, start + match.end(), text[begin : start + match.end()].decode())
    return None


def _is_labeled(behind: bytes) -> bool:
    return bool(pattern(LABEL_BEHIND).search(behind))


FORMS = (
    Forms(
        accepted,
        (
            "9 *",
            "99 *",
            "9.*",
            "99.*",
            "9/*",
            "99/*",
            "9-*",
            "99-*",
            "9, *",
            "99, *",
            "9a*",
            "99a*",
            "9999-*",
            "9999/*",
            "9999.*",
            "9999\u5e74*",
            "9999\ub144*",
        ),
        cues=(
            "birth",
            "dob ",
            "dob:",
            "dob=",
            "dob\t",
            'dob"',
            "d.o.",
            "geburt",
            "geboo",
            "gebo",
            "geb.",
            "n\u00e9 ",
            "n\u00e9e",
            "n\u00e9(",
            "naiss",
            "nac\u00ed",
            "naci",
            "fecha",
            "nasc",
            "urodz",
            "naroz",
            "do\u011f",
            "\u0440\u043e\u0436",
            "\u043d\u0430\u0440",
            "f\u00f6d",
            "f\u00f8d",
            "\u51fa\u751f",
            "\u751f\u5e74",
            "\uc0dd\ub144",
            "born",
            "bin am",
        ),
    ),
    Forms(accepted, ("9999-99-99 is*", "99/99/9999 is*", "99.99.9999 is*")),
)
