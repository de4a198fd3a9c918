"""API keys, access tokens and private keys, by the patterns that their issuers publish for scanners of leaks."""

from pipeline_tasks.text.pii.base58 import bare, is_base58_check
from pipeline_tasks.text.pii.candidates import pattern
from pipeline_tasks.text.pii.forms import Forms, Found, Place

TOKENS = (
    (r"(?:AKIA|ASIA|ABIA|ACCA)", r"[A-Z2-7]{16}"),  # Amazon Web Services
    (r"gh[pousr]_", r"[A-Za-z0-9]{36,255}"),  # GitHub
    (r"github_pat_", r"[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"),
    (r"gl(?:pat|dt|rt|ptt)-", r"[A-Za-z0-9_\-]{20,64}"),  # GitLab
    (r"xox[abeoprs]-", r"[A-Za-z0-9\-]{10,250}"),  # Slack
    (r"xapp-", r"\d-[A-Z0-9]+-\d+-[a-z0-9]{32,}"),
    (r"AIza", r"[A-Za-z0-9_\-]{35}"),  # Google
    (r"GOCSPX-", r"[A-Za-z0-9_\-]{28}"),
    (r"[sr]k_live_", r"[A-Za-z0-9]{16,247}"),  # Stripe
    (r"whsec_", r"[A-Za-z0-9]{32,}"),
    (r"SG\.", r"[A-Za-z0-9_\-]{22}\.[A-Za-z0-9_\-]{43}"),  # SendGrid
    (r"npm_", r"[A-Za-z0-9]{36}"),
    (r"pypi-AgEIcHlwaS5vcmc", r"[A-Za-z0-9_\-]{50,}"),
    (r"hf_", r"[A-Za-z]{34}"),  # Hugging Face
    (r"sk-ant-", r"[A-Za-z0-9_\-]{80,}"),  # Anthropic
    (r"sk-(?:proj-|svcacct-)?", r"[A-Za-z0-9_\-]{20,}T3BlbkFJ[A-Za-z0-9_\-]{20,}"),  # OpenAI
    (r"sk-or-v1-", r"[a-f0-9]{64}"),  # OpenRouter
    (r"gsk_", r"[A-Za-z0-9]{52}"),  # Groq
    (r"r8_", r"[A-Za-z0-9]{37}"),  # Replicate
    (r"xai-", r"[A-Za-z0-9]{80}"),  # xAI
    (r"pplx-", r"[A-Za-z0-9]{48}"),  # Perplexity
    (r"dckr_pat_", r"[A-Za-z0-9_\-]{27}"),  # Docker
    (r"shp(?:at|ca|pa|ss)_", r"[a-fA-F0-9]{32}"),  # Shopify
    (r"do[opr]_v1_", r"[a-f0-9]{64}"),  # DigitalOcean
    (r"lin_api_", r"[A-Za-z0-9]{40}"),  # Linear
    (r"glsa_", r"[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}"),  # Grafana
    (r"rubygems_", r"[a-f0-9]{48}"),
    (r"eyJ", r"[A-Za-z0-9_\-]{10,}\.eyJ[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{10,}"),  # JSON Web Token (RFC 7519), signed
)
"""How tokens are written: what names their issuer, and what follows it."""

TOKEN = rf"(?:{'|'.join(issuer + rest for issuer, rest in TOKENS)})"
BEGINS = rf"(?:^|[_\-])(?:{'|'.join(issuer for issuer, _ in TOKENS)})"
"""Where in a long word a token may begin: with the word, or behind a hyphen or an underscore in it."""

PRIVATE_KEY = r"-----BEGIN (?:[A-Z0-9]{2,10} ){0,2}PRIVATE KEY(?: BLOCK)?-----"
_MARGIN = r"(?:[ \r\n\t>|#*\"'+,]|\\[nrt])*"
KEY_BODY = rf"(?:{_MARGIN}[A-Z][A-Za-z\-]{{3,20}}: [^\r\n\\]{{1,80}})*(?:{_MARGIN}[A-Za-z0-9+/=]{{16,}})+"
"""Headers and lines of a key whose end is missing, also as a quotation or a string has them."""

EXAMPLES = (b"EXAMPLE",)
"""How the keys of Amazon's documentation end."""

_WIF = r"[5KL][1-9A-HJ-NP-Za-km-z]{50,51}"
"""A private key of Bitcoin (wallet import format)."""

ESCAPED = r"^(?:\\(?:[nrt]|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})|%[0-9A-Fa-f]{2})$"
"""An escaped sign of a string or of a web address, whose end is the beginning of a long word."""

_MOST_BEGINS = 4
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
    begin = _behind_escape(text, start, end)
    begin -= len(_SENDGRID) if text[max(begin - len(_SENDGRID), 0) : begin] == _SENDGRID else 0
    word = text[begin : end + 1]
    for at, match in enumerate(pattern(BEGINS).finditer(word)):
        first = begin + match.start() + (word[match.start() : match.start() + 1] in (b"_", b"-"))
        if at < _MOST_BEGINS and (found := _token(text, first, end)):
            return found
    first, last = bare(text, begin, end)
    if last - first in (51, 52) and pattern(_WIF).match(text, first, last) and _is_wif(text[first:last]):
        return Found(first, last, text[first:last].decode())
    return None


def _token(text: bytes, start: int, end: int) -> Found | None:
    """Return the token that begins at `start`, in a long word that ends at `end`."""
    match = pattern(TOKEN).match(text, start, min(len(text), end + _LONGEST_TOKEN))
    if match is None:
        return None
    value, stop = match.group(), match.end()
    is_whole = stop >= end or not text[stop : stop + 1].isalnum()
    if not is_whole or value.endswith(EXAMPLES) or len(set(value[-16:])) < _FEWEST_DIFFERENT:
        return None
    return Found(start, stop, value.decode())


def _behind_escape(text: bytes, start: int, end: int) -> int:
    """Return where a long word begins whose first letters are the end of an escaped sign, such as `%3D`."""
    for at in range(start + 1, min(start + 6, end)):
        if pattern(ESCAPED).search(text[max(start - 1, 0) : at]):
            return at
    return start


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


FORMS = (
    Forms(accepted, begins=rf"(?:{'|'.join(issuer for issuer, _ in TOKENS)})[A-Za-z0-9_.\-]{{6}}|-----BEGIN|{_WIF}"),
)
