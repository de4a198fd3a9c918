"""The language models that the package has, for languages that a recipe names none for.

N-gram models of interface translations and, in English, of manuals and speeches, made by
`benchmarks/default_language_models.py` from packages of free licences; `models/sources.json` lists them (decision 45).
"""

import hashlib
import lzma
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline_tasks.errors import DigestMismatch

if TYPE_CHECKING:  # importing it compiles loops
    from pipeline_tasks.text.words.language_model import LanguageModel

FOLDER = Path(__file__).with_name("models")

SHA256: Mapping[str, str] = {
    "en": "b80f0d154b4732799aa5490c5d8de4b75e03eb5909586a951fff94eeef738c47",
    "de": "a014e898ac4b5688d1b2ca004d2109995f71cfe52f9a06ebad9413eafa97118d",
    "fr": "e6124d0b266ba70e6f33412a8aa03355787fffe1e9553acfcd597e552e2e63cf",
    "es": "d06f07d84f28d34cefdc4c08b562c0b4d9883c1611b7e78bcb7297e595a76605",
    "it": "d236e80d8d63344e575279c66cc4dad1571b8097b9149b8379ce22b96a117256",
    "pt": "ffcbbd4337e8f9f46e80995362dbb57037d99a195c15d2a83031bb5d0b226fd6",
    "nl": "e783f9e7258b9293b10521e88fe9e32aa8996011fc1cd4b0b0bd6da3617e519d",
    "sv": "f83b7c4b4433c39ef25d8aa370e7f08b752a5118b97dd51498a0aaff41e687d7",
    "da": "30e0831b724503f8d7a64d0a02844798f47b3dbb4795cc3a2d2a410a8b0cee97",
    "pl": "dc687b64eb1e55cf3e825bd46b5c4854b49c958b544c0ddf57182ffde87b710c",
    "cs": "6c7c7304e3ce420d6b8adaf7e302adfb6cea1f85075384dfb14ff6ccfd6378f7",
    "hu": "3ac5106db3b3a566e6d8000858ca1cb476446477716709fc5b591eb6e9e1267d",
    "ro": "f81af48ae91eb96517c992f357e87618f7f7e7dd70963f0d5d69aa6e6b42d795",
    "el": "4c1cb6c8090191469d293e4cf44b1dd1bdbaf9948600b7124752c274b02525a0",
    "ru": "aa35f1771007ff2a5d94ab8063c93b19e5b72e637862ecda14da840958c8b3ef",
    "uk": "be02f2413ffc2256ec14f0c4a9d84693a9fdd1ce9a860c489ebbc640a0797955",
    "bg": "a4293ebb80c6070f4e486c79f60631d2942df4a59998c12db0ef53b4d069cb27",
    "tr": "44048b6fce5f3c2074baa958612da9f4879c03b58aecda293c1b378e8a8b58ff",
    "ja": "4d2944df4a1efe53e8b14e799105a7053b81958bdb50388790cd03089af10351",
    "zh": "3764736cce2bf4dbae4af0771910b099ffeb5734db6cfc83f8e76c97f6fa2ef6",
}
"""SHA-256 of each language's file. Other files are other models: the stage has then another version."""


@cache
def shipped_model(language: str) -> "LanguageModel | None":
    """Return the model of a language, read once in a process, or None; DigestMismatch if it is not the released one."""
    from pipeline_tasks.text.words.language_model import model_of

    if language not in SHA256:
        return None
    path = path_of(language)
    return model_of(lzma.decompress(released(path, SHA256[language])), str(path))


def path_of(language: str) -> Path:
    """Return the file of a language's model."""
    return FOLDER / f"{language}.lm.xz"


def require_released() -> None:
    """Raise DigestMismatch unless every model is there as it was released."""
    for language, digest in SHA256.items():
        released(path_of(language), digest)


def released(path: Path, digest: str) -> bytes:
    """Return the content of a file; DigestMismatch if it lacks, or has another SHA-256."""
    try:
        content = path.read_bytes()
    except OSError:
        content = b""
    if hashlib.sha256(content).hexdigest() != digest:
        message = f"{path} is not the language model of this release; install the package again"
        raise DigestMismatch(message)
    return content
