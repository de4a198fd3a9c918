"""Reads the keys of signatures from PEM: Ed25519, and ECDSA over P-256."""

import hashlib
import os
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from pipeline_tasks.errors import RecipeError

__all__ = ["Ed25519PrivateKey", "Ed25519PublicKey", "PrivateKey", "PublicKey", "key_id", "private_key", "public_key"]

PrivateKey = Ed25519PrivateKey | EllipticCurvePrivateKey
PublicKey = Ed25519PublicKey | EllipticCurvePublicKey

KEY_VARIABLE = "REFINERY_SIGNING_KEY"
"""The environment variable that holds the path of a signing key, or the key itself as PEM."""

PASSWORD_VARIABLE = "REFINERY_SIGNING_KEY_PASSWORD"  # noqa: S105 -- the name of a variable
"""The environment variable that holds the password of an encrypted signing key."""

KINDS = "Ed25519 or ECDSA over P-256, as `openssl genpkey -algorithm ed25519` writes one"

_SIGSTORE = b"ENCRYPTED SIGSTORE PRIVATE KEY"
_PEM = "-----BEGIN "


def private_key(named: str) -> PrivateKey:
    """Return the signing key in a file, or in `REFINERY_SIGNING_KEY` if none is named; RecipeError for any other.

    No message has anything of the key.
    """
    value = named or os.environ.get(KEY_VARIABLE, "")
    if not value:
        message = f"name the file of the signing key by --key, or set {KEY_VARIABLE}"
        raise RecipeError(message)
    is_body = _PEM in value
    where = KEY_VARIABLE if not named else "--key" if is_body else value
    body = value.encode(errors="surrogateescape") if is_body else _read(value, where)
    if _SIGSTORE in body:
        message = (
            f"{where} is a key that cosign has encrypted in its own form; sign with a PEM key of {KINDS}, and give "
            "that to cosign by `cosign import-key-pair`"
        )
        raise RecipeError(message)
    password = os.environ.get(PASSWORD_VARIABLE, "").encode() or None
    try:
        key = load_pem_private_key(body, password if b"ENCRYPTED" in body else None)
    except TypeError as error:
        message = f"{where} is encrypted; set {PASSWORD_VARIABLE}"
        raise RecipeError(message) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        message = f"{where} is no private key in PEM, or its password is another one; name one of {KINDS}"
        raise RecipeError(message) from error
    if isinstance(key, Ed25519PrivateKey) or (isinstance(key, EllipticCurvePrivateKey) and _is_p256(key)):
        return key
    message = f"{where} is a key of another kind; name one of {KINDS}"
    raise RecipeError(message)


def public_key(path: str) -> PublicKey:
    """Return the public key in a file; RecipeError for any other, and for a private key, which nobody else needs."""
    body = _read(path, path)
    if b"PRIVATE KEY" in body:
        message = f"{path} is a private key; verify with its public one: `openssl pkey -in {path} -pubout`"
        raise RecipeError(message)
    try:
        key = load_pem_public_key(body)
    except (ValueError, UnsupportedAlgorithm) as error:
        message = f"{path} is no public key in PEM; `openssl pkey -in key.pem -pubout` writes one"
        raise RecipeError(message) from error
    if isinstance(key, Ed25519PublicKey) or (isinstance(key, EllipticCurvePublicKey) and _is_p256(key)):
        return key
    message = f"{path} is a key of another kind; name one of Ed25519 or ECDSA over P-256"
    raise RecipeError(message)


def key_id(key: PublicKey) -> str:
    """Return the id of a key: `SHA256:` and the SHA-256 of its SubjectPublicKeyInfo in DER, as hex digits."""
    body = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return f"SHA256:{hashlib.sha256(body).hexdigest()}"


def _is_p256(key: EllipticCurvePrivateKey | EllipticCurvePublicKey) -> bool:
    return isinstance(key.curve, SECP256R1)


def _read(path: str, where: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else error
        message = f"{where}: the file of the key cannot be read ({said}); correct the path"
        raise RecipeError(message) from error
