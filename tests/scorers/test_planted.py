"""Nonsense is made of documents, the same for the same id, in languages with and without blanks between words."""

from itertools import pairwise
from pydoc_data.topics import topics

import pytest
from refinery_models.planted import CONFUSED, KINDS, THREATS, Pool, Text, cut

from pipeline_tasks.scorers.report import NONSENSE

PROSE = [text.replace("\n", " ").replace("  ", " ") for text in topics.values() if len(text) > 1500][:12]
CHINESE = [
    f"第{number}天的天气很好。我们去公园散步。孩子们在湖边玩耍。老人坐在树下聊天。晚上我们回家吃饭。夜里下了{number}场小雨。"
    for number in range(1, 13)
]


def pool(language: str) -> Pool:
    texts = CHINESE if language == "zh" else PROSE
    return Pool(language, [Text(f"{row:032x}", text) for row, text in enumerate(texts)])


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("kind", KINDS)
def test_nonsense_follows_from_the_id_and_differs_from_its_text(kind: str, language: str) -> None:
    documents = pool(language)
    first = documents.texts[0]
    made = KINDS[kind](first, documents)
    assert made is not None
    assert made != first.text
    assert KINDS[kind](first, pool(language)) == made
    assert KINDS[kind](Text("another", first.text), documents) != made


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_with_too_little_has_no_nonsense(kind: str) -> None:
    assert KINDS[kind](Text("a", "Too short."), pool("en")) is None


def test_words_in_disorder_are_the_words() -> None:
    for language in ("en", "zh"):
        documents = pool(language)
        made = KINDS["words"](documents.texts[0], documents)
        assert made is not None
        assert sorted(documents.words(made)) == sorted(documents.words(documents.texts[0].text))


def test_sentences_are_those_of_other_documents() -> None:
    documents = pool("zh")
    made = KINDS["sentences"](documents.texts[0], documents)
    assert made is not None
    own, others = cut(CHINESE[0]), {part for text in CHINESE[1:] for part in cut(text)}
    assert len(made.split("\n")) == len(own)
    assert set(made.split("\n")) <= others


def test_repeated_is_one_sentence() -> None:
    made = KINDS["repeated"](pool("zh").texts[0], pool("zh"))
    assert made is not None
    assert len(set(cut(made))) == 1
    assert len(cut(made)) >= 5


def test_each_pair_of_words_of_a_machine_is_in_some_document() -> None:
    documents = pool("en")
    made = KINDS["generated"](documents.texts[0], documents)
    assert made is not None
    words = made.split()
    known = {pair for text in PROSE for pair in pairwise(text.split())}
    assert set(pairwise(words)) <= known


def test_threats_are_in_the_language_of_the_text() -> None:
    made = KINDS["threats"](pool("zh").texts[0], pool("zh"))
    assert made is not None
    assert [line for line in made.split("\n") if line in THREATS["zh"]]
    assert KINDS["threats"](Text("a", PROSE[0]), Pool("fi", [])) is None


def test_a_reader_confuses_a_share_of_letters() -> None:
    documents = pool("en")
    text = PROSE[0].replace(" ", "")
    made = KINDS["misread"](Text("a", " ".join(text)), documents)
    assert made is not None
    misread = sum(one != other for one, other in zip(text, made.split(" "), strict=False))
    assert misread > 0.05 * len(text)
    assert all(len(letters) < 3 for letters in CONFUSED.values())


def test_every_kind_says_what_it_is() -> None:
    assert NONSENSE.keys() == KINDS.keys()
