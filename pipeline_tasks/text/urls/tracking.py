"""Parameters of URLs that say where a visitor came from, and nothing of the page."""

TRACKING = (
    "utm_*",  # Google Analytics, "Custom campaigns"
    "gclid",
    "gclsrc",
    "dclid",
    "gad_*",  # Google Ads since 2023: gad_source, gad_campaignid
    "gbraid",
    "wbraid",
    "srsltid",  # Google Merchant Center, on results of the search since 2024
    "_ga",
    "_gl",
    "fbclid",  # Meta
    "mibextid",
    "igsh",
    "igshid",
    "msclkid",  # Microsoft Advertising
    "yclid",  # Yandex
    "ysclid",
    "ttclid",  # TikTok
    "twclid",  # X
    "li_fat_id",  # LinkedIn
    "epik",  # Pinterest
    "rdt_cid",  # Reddit
    "sccid",  # Snap
    "irclickid",  # impact.com
    "mc_cid",  # Mailchimp
    "mc_eid",
    "_hsenc",  # HubSpot
    "_hsmi",
    "mkt_tok",  # Marketo
    "mtm_*",  # Matomo
    "pk_campaign",
    "pk_kwd",
    "jsessionid",  # sessions, as the IIPC's URL canonicalizers leave them out
    "phpsessid",
    "aspsessionid*",
    "cfid",
    "cftoken",
)
"""Their names, in any case; `utm_*` is all that begin so. A servlet's are in the path, behind `;`."""
