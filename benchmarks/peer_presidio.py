"""Runs Presidio's pattern recognizers over texts and prints what they find as JSON: (kind, start, end, score) of each.

.refinery/peers-pii/bin/python benchmarks/peer_presidio.py TEXTS.jsonl

Names and places, which need a language model, are left out. Without one no words around a value raise its score, so
the figures are given for any score and for those from a half on, which check digits alone reach.
"""

import inspect
import json
import logging
import sys
import time
from pathlib import Path
from typing import Any

from presidio_analyzer import predefined_recognizers

KINDS = {
    "CREDIT_CARD": "card",
    "IBAN_CODE": "iban",
    "US_SSN": "national_id",
    "UK_NINO": "national_id",
    "DE_TAX_ID": "national_id",
    "ES_NIF": "national_id",
    "ES_NIE": "national_id",
    "IT_FISCAL_CODE": "national_id",
    "IN_AADHAAR": "national_id",
    "CRYPTO": "crypto",
    "MAC_ADDRESS": "mac",
    "EMAIL_ADDRESS": "email",
    "IP_ADDRESS": "ip",
    "PHONE_NUMBER": "phone",
}
"""The kinds of both; those that Presidio has no pattern for, such as keys and dates of birth, it cannot find."""


def recognizers() -> list[Any]:
    """Return one recognizer of each entity of `KINDS`, those that are made for English first."""
    made: dict[str, Any] = {}
    for name, kind in sorted(vars(predefined_recognizers).items()):
        if inspect.isclass(kind) and name.endswith("Recognizer"):
            try:
                recognizer: Any = kind()
            except Exception:  # noqa: BLE001, S112 -- one that needs a model or a service
                continue
            for entity in recognizer.supported_entities:
                if entity in KINDS:
                    made.setdefault(entity, recognizer)
    return list(made.values())


def main() -> None:
    """Print the findings of each text, and the seconds of all."""
    logging.disable(logging.CRITICAL)
    texts = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    found, all_of_them = [], recognizers()
    started = time.process_time()
    for text in texts:
        results = [one for each in all_of_them for one in each.analyze(text, each.supported_entities, None) or []]
        found.append([(KINDS[r.entity_type], r.start, r.end, r.score) for r in results if r.entity_type in KINDS])
    entities = sorted({entity for each in all_of_them for entity in each.supported_entities})
    print(json.dumps({"found": found, "seconds": time.process_time() - started, "entities": entities}))


if __name__ == "__main__":
    main()
