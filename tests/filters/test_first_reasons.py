"""One text per rule, made to fail that rule first: each profile's rules fire, in the order of their source."""

import itertools

import pyarrow as pa
import pytest

from pipeline_tasks.stages.filter_quality import FILTERS, Params, filter_texts
from tests.documents import documents

PROSE_TEXT = (
    "meadow herons and otters often share this quiet water with anglers who have come from towns nearby to watch "
    "them be patient while mist lifts slowly over reeds that bend toward the current of a wide river whose banks remember "
    "every spring flood since mills were built here long before anyone thought about counting birds "
)
WORDS = PROSE_TEXT.split()
SENTENCE = " ".join(WORDS) + "."
PROSE = "\n".join(" ".join(WORDS[at : at + 10]) + "." for at in range(0, 50, 10))
LONG = " ".join(f"word{number} the of" for number in range(33_400))
CONTENTS = "\n".join(
    f"{at}.{part}. On {word} and {other}"
    for at, (word, other) in enumerate(itertools.pairwise(WORDS))
    for part in range(2)
)
GRAM = "one two three four five six seven eight nine ten"

FIRST = [
    ("gopher_quality", "Too few words.", "short_doc"),
    ("gopher_quality", LONG, "long_doc"),
    ("gopher_quality", "an it to " * 20, "below_avg_threshold"),
    ("gopher_quality", "extraordinarily " * 60, "above_avg_threshold"),
    ("gopher_quality", SENTENCE + " #1a" * 9, "too_many_hashes"),
    ("gopher_quality", SENTENCE + " so..." * 9, "too_many_ellipsis"),
    ("gopher_quality", "\n".join(f"- {word} item" for word in WORDS), "too_many_bullets"),
    ("gopher_quality", PROSE + "\nthen...\nthen...\nthen…", "too_many_end_ellipsis"),
    ("gopher_quality", SENTENCE + " 1234" * 20, "below_alpha_threshold"),
    ("gopher_quality", "Rivers carry silt downstream every single spring season. " * 10, "enough_stop_words"),
    ("gopher_repetition", "Same paragraph.\n\n" * 4, "dup_para_frac"),
    ("gopher_repetition", f"{SENTENCE}\n\n{SENTENCE}\n\na b\n\nc d", "dup_para_char_frac"),
    ("gopher_repetition", "line\n" * 4 + PROSE, "dup_line_frac"),
    ("gopher_repetition", f"{SENTENCE}\n{SENTENCE}\na b\nc d", "dup_line_char_frac"),
    ("gopher_repetition", "hello there " * 9 + SENTENCE, "top_2_gram"),
    ("gopher_repetition", f"{SENTENCE} Then it is said again, word by word: {SENTENCE}", "duplicated_5_n_grams"),
    ("c4", PROSE.replace("herons", "lorem ipsum"), "lorem_ipsum"),
    ("c4", PROSE.replace("herons", "{herons}"), "curly_bracket"),
    ("c4", SENTENCE, "too_few_sentences"),
    ("c4_paragraphs", f"{SENTENCE}\n{SENTENCE}\n{'x' * 199}", "too_few_paragraphs"),
    ("c4_paragraphs", f"{SENTENCE}\n{SENTENCE}\n{'x' * 200}", None),
    ("fineweb", " \n ", "empty"),
    ("fineweb", PROSE.replace(".", ""), "line_punct_ratio"),
    ("fineweb", "A short line.\nAnd another one.\nA third is here.", "short_line_ratio"),
    ("fineweb", f"{PROSE}\n{PROSE}", "char_duplicates_ratio"),
    ("fineweb", "\n\n\n\n\n\n".join(PROSE.split("\n")), "new_line_ratio"),
    ("dclm", " ".join(WORDS[:49]) + ' -- "quoted"', "too_few_words"),
    ("dclm", SENTENCE + " #1a" * 4 + " so..." * 3, "symbols"),
    ("dclm", "\n".join(f"* {word} item" for word in WORDS), "bullets"),
    ("dclm", SENTENCE + " 1234" * 20, "non_alpha"),
    ("dclm", "Rivers carry silt downstream every single spring season. " * 10, "stop_words"),
    ("dclm", "Same line.\n" * 2 + PROSE.replace("\n", " ") + "\nEnd of it.", "line_frac"),
    ("dclm", " ".join(f"{GRAM} the of x{number}" for number in range(9)), "top_2_gram"),
    ("dclm", PROSE + "\nHOME AND MORE\nABOUT US\nCONTACT", "removed_words"),
    ("dolma", "to be or a of it an in at by " * 6, "short_words"),
    ("dolma", SENTENCE + " a#" * 9, "symbols"),
    ("dolma", SENTENCE.replace("the", "The").replace("and", "plus"), None),
    ("dolma", PROSE.replace("\n", "\n\n"), "dup_line_frac"),
    ("running_sentences", f"{SENTENCE}\n\n" + CONTENTS, "few"),
    ("running_sentences", f"{PROSE}\n\n" + CONTENTS[: 2 * len(PROSE)], None),
    ("nemo", SENTENCE + " @@@@@@" * 20, "non_alpha_numeric"),
    ("nemo", SENTENCE + " #" * 9, "symbols"),
    ("nemo", SENTENCE + " 12345678" * 9, "numbers"),
    ("nemo", f"{SENTENCE}http://example.org/{'a' * 99}", "urls"),
    ("nemo", f"{PROSE}\n\nCookie policy\n\nTerms of use", "boilerplate"),
    ("nemo", "Same line.\n" * 4 + SENTENCE, "repeated_lines"),
    ("nemo", "Too few words.", "too_few_words"),
    ("nemo", PROSE.replace(".", ""), "punctuation"),
    ("nemo", "\n".join(f"• {word} item, the one." for word in WORDS), "top_2_gram"),
    ("cc_net", "x" * 299, "too_short"),
    ("cc_net", "x" * 300, None),
    ("seeds", "Too short.", "too_short"),
    ("seeds", "again and " * 40, "repeated_words"),
    ("seeds", SENTENCE + ' "!?"' * 60, "punctuation"),
    ("seeds", f"{SENTENCE} def class import lambda return", "code_keywords"),
    ("seeds", SENTENCE + " {}" * 12, "code_symbols"),
]


LINED = ("c4", "c4_badwords", "c4_paragraphs", "fineweb")
"""Profiles that want several lines, or a list."""


def first(profile: str, text: str) -> str | None:
    docs = documents([text], language=pa.array(["en"]))
    (out,) = filter_texts(iter(docs.to_batches()), params=Params(profiles=(profile,)))
    reason: str | None = out["reason"][0].as_py()
    return reason and reason.removeprefix(f"{profile}:")


@pytest.mark.parametrize(("profile", "text", "why"), FIRST, ids=[f"{profile}-{why}" for profile, _, why in FIRST])
def test_a_text_made_to_fail_a_rule_fails_it_first(profile: str, text: str, why: str | None) -> None:
    assert first(profile, text) == why


@pytest.mark.parametrize("profile", [name for name in FILTERS if name not in LINED])
def test_one_long_sentence_of_prose_passes(profile: str) -> None:
    assert first(profile, SENTENCE) is None
