"""Names public evaluation sets and URL lists: where they are, their licences, and what of them is read."""

from collections.abc import Mapping
from typing import NamedTuple


class EvaluationSet(NamedTuple):
    """A set on Hugging Face's hub: the Parquet files of a split below `folder`, and the field of each of ours.

    `fields` has names that `decontaminate` reads, and where a row has them; a dot goes into a struct.
    """

    repository: str
    folder: str
    split: str
    fields: Mapping[str, str]


EVALUATION_SETS: Mapping[str, EvaluationSet] = {
    "arc_challenge": EvaluationSet(
        "allenai/ai2_arc", "ARC-Challenge", "test", {"question": "question", "choices": "choices.text"}
    ),
    "arc_easy": EvaluationSet(
        "allenai/ai2_arc", "ARC-Easy", "test", {"question": "question", "choices": "choices.text"}
    ),
    "gsm8k": EvaluationSet("openai/gsm8k", "main", "test", {"question": "question", "answer": "answer"}),
    "hellaswag": EvaluationSet("Rowan/hellaswag", "data", "validation", {"question": "ctx", "choices": "endings"}),
    "humaneval": EvaluationSet(
        "openai/openai_humaneval", "openai_humaneval", "test", {"prompt": "prompt", "solution": "canonical_solution"}
    ),
    "mbpp": EvaluationSet("google-research-datasets/mbpp", "full", "test", {"text": "text", "solution": "code"}),
    "mmlu": EvaluationSet("cais/mmlu", "all", "test", {"question": "question", "choices": "choices"}),
    "truthfulqa": EvaluationSet(
        "truthfulqa/truthful_qa", "generation", "validation", {"question": "question", "answer": "best_answer"}
    ),
    "winogrande": EvaluationSet("allenai/winogrande", "winogrande_xl", "validation", {"question": "sentence"}),
}
"""Sets by the names that recipes may give them."""

UT1 = "https://dsi.ut-capitole.fr/blacklists/download"
"""Lists of the Université Toulouse Capitole: an archive per category with `domains` and `urls`, and their MD5 sums."""

UT1_SUMS = "MD5SUM.LST"

UT1_LICENCE = "CC BY-SA 4.0"

UT1_CATEGORIES = (
    "adult",
    "agressif",
    "arjel",
    "chat",
    "dating",
    "ddos",
    "filehosting",
    "gambling",
    "mixed_adult",
    "phishing",
)
"""Categories that RefinedWeb blocks (arXiv 2306.01116, G.1.1), as do the recipes that follow it."""
