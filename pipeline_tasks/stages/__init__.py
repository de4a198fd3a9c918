"""One file per stage, or a folder of that name; each exports its card as `STAGE`.

Imports the vocabulary, `filters` and `text`; knows nothing of engines, storage or Airflow.
"""

NAMES = (
    "ingest",
    "check_rights",
    "read_images",
    "extract",
    "filter_url",
    "filter_language",
    "filter_quality",
    "dedup_url",
    "dedup_exact",
    "cut_templates",
    "dedup_minhash",
    "dedup_paragraphs",
    "dedup_substrings",
    "score_quality",
    "filter_toxicity",
    "scrub_pii",
    "decontaminate",
    "rephrase",
    "filter_generated",
    "scrub_generated",
    "decontaminate_generated",
    "enrich",
    "embed",
    "dedup_semantic",
    "topics",
    "tokenize",
    "select",
    "mix",
    "shuffle",
    "takedown",
    "pack",
)
"""The stages of this package, in the order in which docs and tables over many recipes show them."""
