"""Parameters of URLs that say where a visitor came from, and nothing of the page."""

TRACKING = (
    "utm_*",  # Google Analytics, "Custom campaigns"
    "gclid",
    "dclid",
    "gbraid",
    "wbraid",
    "_gl",
    "fbclid",  # Meta
    "igshid",
    "msclkid",  # Microsoft Advertising
    "yclid",  # Yandex
    "mc_cid",  # Mailchimp
    "mc_eid",
    "jsessionid",  # sessions, as the IIPC's URL canonicalizers leave them out
    "phpsessid",
)
"""Their names, in any case; `utm_*` is all that begin so."""
