"""API keys, access tokens and private keys, by the patterns that their issuers publish for scanners of leaks."""

from pipeline_tasks.text.pii.base58 import is_base58_check
from pipeline_tasks.text.pii.candidates import pattern
from pipeline_tasks.text.pii.forms import Forms, Found, Place

TOKENS = (
    r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}",  # Amazon Web Services
    r"gh[pousr]_[A-Za-z0-9]{36,255}",  # GitHub
    r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}",
    r"gl(?:pat|dt|rt|ptt)-[A-Za-z0-9_\-]{20,64}",  # GitLab
    r"xox[abeoprs]-[A-Za-z0-9\-]{10,250}",  # Slack
    r"xapp-\d-[A-Z0-9]+-\d+-[a-z0-9]{32,}",
    r"AIza[A-Za-z0-9_\-]{35}",  # Google
    r"GOCSPX-[A-Za-z0-9_\-]{28}",
    r"[sr]k_live_[A-Za-z0-9]{16,247}",  # Stripe
    r"whsec_[A-Za-z0-9]{32,}",
    r"SG\.[A-Za-z0-9_\-]{22}\.[A-Za-z0-9_\-]{43}",  # SendGrid
    r"npm_[A-Za-z0-9]{36}",
    r"pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_\-]{50,}",
    r"hf_[A-Za-z]{34}",  # Hugging Face
    r"sk-ant-[A-Za-z0-9_\-]{80,}",  # Anthropic
    r"sk-(?:proj-|svcacct-)?[A-Za-z0-9_\-]{20,}T3BlbkFJ[A-Za-z0-9_\-]{20,}",  # OpenAI
    r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",  # Shopify
    r"dop_v1_[a-f0-9]{64}",  # DigitalOcean
    r"eyJ[A-Za-z0-9_\-]{10,}\.eyJ[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{10,}",  # JSON Web Token (RFC 7519), signed
)
"""How tokens are written; each begins with what names its issuer."""

TOKEN = rf"(?:{'|'.join(TOKENS)})"
PRIVATE_KEY = r"-----BEGIN (?:[A-Z0-9]{2,10} ){0,2}PRIVATE KEY(?: BLOCK)?-----"
KEY_BODY = r"(?:(?:[ \r\n\t]|\\n)*[A-Za-z0-9+/=]{16,})+"
"""Lines of a key whose end is missing."""

EXAMPLES = (b"EXAMPLE",)
"""How the keys of Amazon's documentation end."""

_WIF = r"[5KL][1-9A-HJ-NP-Za-km-z]{50,51}"
"""A private key of Bitcoin (wallet import format)."""

_LONGEST_TOKEN, _LONGEST_KEY = 4_096, 16_384
_FEWEST_DIFFERENT = 6
_END = b"-----END "
_SENDGRID = b"SG."
"""What is ahead of the long words of a token, and too short to be a part of them."""


def accepted(place: Place) -> Found | None:
    """Return the token or the private key that begins with a long word."""
    text, start, end, _ = place
    if text.startswith(b"-----B", start):
        return _private_key(text, start)
    start -= len(_SENDGRID) if text[max(start - len(_SENDGRID), 0) : start] == _SENDGRID else 0
    match = pattern(TOKEN).match(text, start, min(len(text), end + _LONGEST_TOKEN))
    if match is None:
        if end - start in (51, 52) and pattern(_WIF).match(text, start, end) and _is_wif(text[start:end]):
            return Found(start, end, text[start:end].decode())
        return None
    value, stop = match.group(), match.end()
    is_whole = stop >= end or not text[stop : stop + 1].isalnum()
    if not is_whole or value.endswith(EXAMPLES) or len(set(value[-16:])) < _FEWEST_DIFFERENT:
        return None
    return Found(start, stop, value.decode())


def _is_wif(value: bytes) -> bool:
    return is_base58_check(value, versions=(0x80,), sizes=(33, 34))


def _private_key(text: bytes, start: int) -> Found | None:
    """Return a private key with its frame; one that is cut goes on as long as its letters do."""
    match = pattern(PRIVATE_KEY).match(text, start, min(len(text), start + 80))
    if match is None:
        return None
    stop = text.find(_END, match.end(), match.end() + _LONGEST_KEY)
    again = text.find(b"-----BEGIN", match.end(), match.end() + _LONGEST_KEY)
    if stop >= 0 and not 0 <= again < stop:
        closing = text.find(b"-----", stop + len(_END), stop + 80)
        end = closing + 5 if closing >= 0 else stop + len(_END)
    else:
        body = pattern(KEY_BODY).match(text, match.end(), min(len(text), match.end() + _LONGEST_KEY))
        end = len(text[: body.end()].rstrip()) if body else match.end()
    if not pattern(r"[A-Za-z0-9+/=]{16}").search(text, match.end(), end):
        return None  # the frame alone, as a text about keys has it
    return Found(start, end, text[start:end].decode())


FORMS = (Forms(accepted),)
