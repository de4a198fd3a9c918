"""Signs and opens envelopes of DSSE 1.0, the form in which in-toto statements are signed.

The signature is over the pre-authentication encoding of payload and type (`pae`), by Ed25519 or by ECDSA over P-256
with SHA-256. That of ECDSA is DER, as `cosign` writes and reads it, and deterministic (RFC 6979).
https://github.com/secure-systems-lab/dsse/blob/master/protocol.md
"""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA

from pipeline_tasks.errors import SignatureRefused
from refinery_rights.statements.keys import Ed25519PrivateKey, Ed25519PublicKey, PrivateKey, PublicKey, key_id

_SHA256 = hashes.SHA256()


@dataclass(frozen=True, slots=True)
class Opened:
    """The payload of an envelope whose signature holds, its type, and the id of the key that signed it."""

    payload: bytes
    payload_type: str
    key: str


def pae(payload_type: str, payload: bytes) -> bytes:
    """Return the bytes that are signed: type and payload, each behind its length in bytes."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def sign(payload: bytes, payload_type: str, key: PrivateKey) -> bytes:
    """Return an envelope as one line of JSON; the same payload and key give the same bytes."""
    signed = pae(payload_type, payload)
    if isinstance(key, Ed25519PrivateKey):
        signature = key.sign(signed)
    else:
        signature = key.sign(signed, ECDSA(_SHA256, deterministic_signing=True))
    envelope = {
        "payloadType": payload_type,
        "payload": _encoded(payload),
        "signatures": [{"keyid": key_id(key.public_key()), "sig": _encoded(signature)}],
    }
    return json.dumps(envelope).encode() + b"\n"


def open_envelope(body: bytes, key: PublicKey, where: str) -> Opened:
    """Return what an envelope holds; SignatureRefused names `where` it is, unless one of its signatures is the key's.

    The ids of keys in it are hints that nobody has signed, and are not read.
    """
    try:
        envelope = json.loads(body)
        payload_type, payload = str(envelope["payloadType"]), _decoded(envelope["payload"])
        signatures = [_decoded(each["sig"]) for each in envelope["signatures"]]
        signed = pae(payload_type, payload)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        message = f"{where} is no DSSE envelope; name the file that `refinery keep sign` has written"
        raise SignatureRefused(message) from error
    if not any(_holds(signature, signed, key) for signature in signatures):
        hints = ", ".join(sorted(_hints(envelope))) or "none"
        message = (
            f"{where} is not signed by this key, {key_id(key)}, or was changed since (it names the key {hints}); "
            "name the public key of who signed it, or get the statement again from where it is kept"
        )
        raise SignatureRefused(message)
    return Opened(payload, payload_type, key_id(key))


def _holds(signature: bytes, signed: bytes, key: PublicKey) -> bool:
    try:
        if isinstance(key, Ed25519PublicKey):
            key.verify(signature, signed)
        else:
            key.verify(signature, signed, ECDSA(_SHA256))
    except InvalidSignature:
        return False
    return True


def _hints(envelope: Mapping[str, Any]) -> set[str]:
    """Return the ids of keys in an envelope, which anybody can have written, as a terminal can show them."""
    return {ascii(str(each.get("keyid"))[:100])[1:-1] for each in envelope["signatures"] if each.get("keyid")}


def _encoded(body: bytes) -> str:
    return base64.b64encode(body).decode()


def _decoded(text: str) -> bytes:
    """Return the bytes of standard or URL-safe base64, of which a reader has to take both; ValueError for others."""
    try:
        return base64.b64decode(text.translate(str.maketrans("-_", "+/")), validate=True)
    except binascii.Error as error:
        message = f"it is no base64 ({error})"
        raise ValueError(message) from error
