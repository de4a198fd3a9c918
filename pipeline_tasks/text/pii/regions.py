"""Which countries' national phone formats a document may have: those of its language and of its host.

Languages are ISO 639-1 codes, countries ISO 3166-1 (Unicode CLDR, `territoryInfo`: where most speakers of a language
live). A country whose top-level domain is sold worldwide, such as `.io`, says nothing.
"""

from collections.abc import Mapping
from functools import lru_cache

REGIONS_OF_LANGUAGE: Mapping[str, tuple[str, ...]] = {
    "ar": ("EG", "SA", "AE", "MA"),
    "az": ("AZ",),
    "be": ("BY",),
    "bg": ("BG",),
    "bn": ("BD", "IN"),
    "bs": ("BA",),
    "ca": ("ES",),
    "cs": ("CZ",),
    "da": ("DK",),
    "de": ("DE", "AT", "CH"),
    "el": ("GR", "CY"),
    "en": ("US", "GB", "AU"),
    "es": ("ES", "MX", "AR", "CO", "CL"),
    "et": ("EE",),
    "eu": ("ES",),
    "fa": ("IR",),
    "fi": ("FI",),
    "fr": ("FR", "BE", "CH"),
    "gl": ("ES",),
    "gu": ("IN",),
    "he": ("IL",),
    "hi": ("IN",),
    "hr": ("HR",),
    "hu": ("HU",),
    "hy": ("AM",),
    "id": ("ID",),
    "is": ("IS",),
    "it": ("IT", "CH"),
    "ja": ("JP",),
    "ka": ("GE",),
    "kk": ("KZ",),
    "kn": ("IN",),
    "ko": ("KR",),
    "lt": ("LT",),
    "lv": ("LV",),
    "mk": ("MK",),
    "ml": ("IN",),
    "mr": ("IN",),
    "ms": ("MY",),
    "nl": ("NL", "BE"),
    "no": ("NO",),
    "pa": ("IN", "PK"),
    "pl": ("PL",),
    "pt": ("BR", "PT"),
    "ro": ("RO", "MD"),
    "ru": ("RU", "KZ"),
    "sk": ("SK",),
    "sl": ("SI",),
    "sq": ("AL",),
    "sr": ("RS",),
    "sv": ("SE",),
    "ta": ("IN",),
    "te": ("IN",),
    "th": ("TH",),
    "tl": ("PH",),
    "tr": ("TR",),
    "uk": ("UA",),
    "ur": ("PK",),
    "vi": ("VN",),
    "zh": ("CN", "TW", "HK"),
}
"""In most of these languages a page on a host without a country is of the countries listed."""

_SOLD = "ac ai am cc cd cf co cx fm ga gg gl gq gs im io ky la ly me ml ms mu nu pw sc sh so st su tk to tl tv vc vg ws"
SOLD_WORLDWIDE = frozenset(_SOLD.split())
"""Top-level domains of countries that are registered everywhere, for their letters."""

_OTHER_NAMES = {"uk": "GB", "eu": "", "ac": ""}


@lru_cache(maxsize=4096)
def regions_of(language: str, host: str, always: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the countries of a document: `always`, those of its language, then that of its host's domain."""
    regions = [*always, *REGIONS_OF_LANGUAGE.get(language.partition("-")[0].lower(), ()), _region_of_host(host)]
    return tuple(dict.fromkeys(region for region in regions if region))


def _region_of_host(host: str) -> str:
    import phonenumbers

    top = host.rstrip(".").rpartition(".")[2].lower()
    if top in SOLD_WORLDWIDE:
        return ""
    region = _OTHER_NAMES.get(top, top.upper())
    return region if region in phonenumbers.SUPPORTED_REGIONS else ""
