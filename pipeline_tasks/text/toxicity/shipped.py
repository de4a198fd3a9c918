"""The lexicons that the package has, for languages that a recipe names none for."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from pipeline_tasks.errors import DigestMismatch

FOLDER = Path(__file__).with_name("lexicons")

SHA256: Mapping[str, str] = {
    "de": "4670bd50a300ac6fb40eef20017f843957b38f00371d9993536af80a70e6e252",
    "en": "ad030b58456bd8288e4219ac223a53e9f359b89594b597d296da9e3006d6e7fb",
    "es": "3c201b013e238ba408c956b7d0f1315983a1ca3594bb572067eb4b57c4c78a98",
    "fr": "7b4de0f3f8ff08a5fd44e5ea042e823385b3644b200fb4835e5375e7e00a7fcc",
    "it": "a8285660b91330a9f03d286713e6bbedf7066380a7baf222293926830cb3f980",
    "ja": "2ebd1bef62a240b9783fd782b73ebc15d1076fe961ba5575afa4ed5a40b3d2ae",
    "pt": "f9f2bbff5a7b7bb3d48f11f8b3456efa7692dcb21bba339e2d331018ac6fa9dc",
    "ru": "b66e5a54e67f71eef3c08fb99cbe0420c2a7e369badb33689eb91aa6f09ad2f6",
    "zh": "5e94044024cd32f908e7c7086447ce3a2b05c8ae39bac18ab5a4f6dd12674b40",
}
"""SHA-256 of each language's file. Other files are other lexicons: `filter_toxicity` has then another version."""


def shipped_path(language: str) -> str:
    """Return the file of a language's lexicon; DigestMismatch if it lacks, or is not the released one."""
    path = FOLDER / f"{language}.txt"
    try:
        content = path.read_bytes()
    except OSError:
        content = b""
    if hashlib.sha256(content).hexdigest() != SHA256[language]:
        message = f"{path} is not the lexicon of this release; install the package again"
        raise DigestMismatch(message)
    return str(path)
