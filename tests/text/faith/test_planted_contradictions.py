"""Contradictions of fourteen kinds are found in rewrites, and faithful ones pass; a third of the pairs is held out."""

from collections import Counter

from benchmarks.faithfulness import Result, failed, judged
from pipeline_tasks.text.faith.grounding import grounds
from pipeline_tasks.text.faith.quantities import read
from pipeline_tasks.text.faith.vocabulary import plain, sentences, vocabulary
from tests.text.faith.planting import KINDS, Pair, read_pairs, read_retold

# Ratchets: recalls only go up, and false alarms only down.
TUNED = dict.fromkeys(KINDS, 0.92) | {"fig": 0.98, "negadd": 0.9, "negdrop": 0.97, "invented": 0.95, "other": 1.0}
HELD_OUT = dict.fromkeys(KINDS, 1.0) | {"fig": 0.96, "name": 0.87, "nameadd": 0.8, "negadd": 0.85, "invented": 0.95}


def test_there_are_enough_pairs() -> None:
    pairs = read_pairs()
    languages = Counter(pair.language for pair in pairs)
    assert len(pairs) >= 60
    assert set(languages) == {"en", "de", "fr", "es", "zh"}
    assert min(languages.values()) >= 10
    assert len(KINDS) == 14


def _require(result: Result, least: dict[str, float]) -> None:
    recalls = {kind: counts.recall for kind, counts in result.kinds.items()}
    assert {kind: recall for kind, recall in recalls.items() if recall < least[kind]} == {}
    assert result.false_alarms == 0
    assert all(counts.planted for counts in result.kinds.values())


def test_contradictions_are_found_where_rules_were_tuned() -> None:
    _require(judged([pair for pair in read_pairs() if not pair.is_held_out]), TUNED)


def test_contradictions_are_found_where_nobody_looked() -> None:
    _require(judged([pair for pair in read_pairs() if pair.is_held_out]), HELD_OUT)


def _grounds_of(pair: Pair, text: str) -> tuple[float, bool]:
    after = plain(text)
    found = grounds(plain(pair.source), after, vocabulary(pair.language), read(after, pair.language).bounds())
    return found.share or 0.0, bool(found.invented)


def test_a_text_of_something_else_is_told_by_its_stems_alone() -> None:
    pairs = read_pairs()
    own = [_grounds_of(pair, pair.rewrite) for pair in (*pairs, *read_retold())]
    others = [
        _grounds_of(pair, other.rewrite)
        for pair in pairs
        for other in pairs
        if other.language == pair.language and other != pair
    ]
    assert min(share for share, _ in own) > 0.55
    assert max(share for share, _ in others) < 0.35
    assert not any(invented for _, invented in own)
    assert all(invented for _, invented in others)


def test_merged_sentences_are_no_graft() -> None:
    """A sentence of the source, whole, and one of the source or of its faithful rewrite are made one."""
    copied = rewritten = total = 0
    for pair in read_pairs():
        comma = "，" if pair.language == "zh" else ", "
        whole, faithful = _sentences(pair.source), _sentences(pair.rewrite)
        for first in whole:
            opening = first.rstrip(".。") + comma
            copied += sum(_grounds_of(pair, opening + other)[1] for other in whole)
            rewritten += sum(_grounds_of(pair, opening + other)[1] for other in faithful)
            total += len(faithful)
    assert total > 700
    assert copied <= 0.005 * total
    assert rewritten <= 0.04 * total


def _sentences(text: str) -> list[str]:
    return [plain(text)[start:end].strip() for start, end in sentences(plain(text))]


def test_questions_summaries_and_lists_are_faithful() -> None:
    """One says that a canal is still there, where its source says that it was not filled in."""
    retold = read_retold()
    assert len(retold) == 20
    assert sum(map(bool, failed([(pair, pair.rewrite) for pair in retold]))) <= 1


def test_a_summary_that_leaves_out_a_denial_is_faithful() -> None:
    from pipeline_tasks.text.faith.comparing import compare

    source = " ".join(pair.source for pair in read_pairs() if pair.language == "en")
    first = "The ferry Oline left the port of Bergen on 12 March 2019 with 214 passengers."
    assert not compare(source, first, "en").negations
