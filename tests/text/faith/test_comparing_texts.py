"""What a generated text says that its source does not is found, however both write it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.faith.comparing import compare
from pipeline_tasks.text.faith.overlap import copies, repeated
from pipeline_tasks.text.faith.quantities import read
from pipeline_tasks.text.faith.vocabulary import LANGUAGES, Vocabulary, plain, sentences, vocabulary
from tests.text.faith.planting import read_pairs

PAIRS = read_pairs()

COMPARED = ("figures", "dates", "units", "names", "negations", "leaks", "invented")


def found(source: str, written: str, language: str = "en") -> set[str]:
    differences = compare(source, written, language)
    return {kind for kind in COMPARED if getattr(differences, kind)}


@pytest.mark.parametrize(
    ("language", "source", "written"),
    [
        ("en", "Twelve ships carried 1.5 million tons over 3 km.", "12 ships took 1,500,000 t over three kilometers."),
        ("en", "On 12 May 2021 it rained.", "Rain fell on 2021-05-12."),
        ("en", "It lasted two hours and cost $5m.", "It took 120 minutes, at 5 million dollars."),
        ("en", "Half of them left; 1,187 stayed.", "50 percent left, and about 1,200 stayed."),
        ("en", "The World Health Organization met in Germany.", "The meeting of the WHO was a German one."),
        ("de", "Es waren 1.234,5 Tonnen am 3. Mai 2020.", "Am 03.05.2020 wogen sie 1 234,5 t."),
        ("de", "Fünfundzwanzig Prozent von zwei Millionen.", "25 % von 2.000.000."),
        ("fr", "Quatre-vingt-dix-sept pour cent en 10 ans.", "97 % en dix ans."),
        ("es", "Treinta y cinco por ciento de mil doscientos.", "El 35 % de 1.200."),
        ("ru", "Двадцать пять километров, 1,5 млн человек.", "25 км и 1 500 000 человек."),
        ("zh", "三百二十五公里，百分之三十五，150万人。", "325千米，35%，1500000人。"),
        ("ar", "المسافة ٣٥ كم", "المسافة 35 كم"),
    ],
)
def test_the_same_written_otherwise_is_no_difference(language: str, source: str, written: str) -> None:
    assert found(source, written, language) == set()


@pytest.mark.parametrize(
    ("language", "source", "written", "kind"),
    [
        ("en", "The bridge is 3 km long.", "The bridge is 3 miles long.", "units"),
        ("en", "It cost 1.5 million euros.", "It cost 1.5 billion euros.", "figures"),
        ("en", "It cost about 1,187 euros.", "It cost about 1,400 euros.", "figures"),
        ("en", "He left on 12 May 2021.", "He left on 12 June 2021.", "dates"),
        ("en", "The mayor of Bergen left.", "The mayor of Oslo left.", "names"),
        ("en", "The council approved the new bridge.", "The council did not approve the new bridge.", "negations"),
        ("en", "The council did not approve the bridge.", "The council did approve the bridge.", "negations"),
        ("en", "The bridge is long.", "Sure, here is your text:\nThe bridge is long.", "leaks"),
        ("en", "The bridge is long.", "The bridge is long.<|im_end|>", "leaks"),
        ("de", "Der Hafen von Bremen ist alt.", "Der Hafen von Köln ist alt.", "names"),
        ("zh", "会议在南京市举行。", "会议在合肥市举行。", "names"),
    ],
)
def test_a_difference_is_found_by_its_kind(language: str, source: str, written: str, kind: str) -> None:
    assert found(source, written, language) == {kind}


POOL = (
    "The pool closes a connection that no client has used for long. "
    "Warm connections are kept in a queue, and the oldest is taken first. "
    "A worker that is idle asks the scheduler for another task. "
    "Logs are written to a folder of their own. "
    "Each night the archive is copied to a second machine."
)


@pytest.mark.parametrize(
    ("written", "invented"),
    [
        ("The oldest of the warm connections in the queue is taken first.", []),
        ("Warm connections are kept in a queue, and the oldest is taken before others.", []),
        (
            "Logs have a folder. Developers enjoy elegant interfaces and flexible tools.",
            ["Developers enjoy elegant interfaces and flexible tools."],
        ),
        (
            "Warm connections are kept in a queue, and the oldest encrypts passwords using certificates.",
            ["Warm connections are kept in a queue, and the oldest encrypts passwords using certificates."],
        ),
        (
            "The pool closes a connection that no client has used, whereas the archive is copied nightly to the machine.",
            [
                "The pool closes a connection that no client has used, whereas the archive is copied nightly to the machine."
            ],
        ),
        ("It is so.", []),
    ],
)
def test_sentences_that_come_from_elsewhere_are_invented(written: str, invented: list[str]) -> None:
    found = compare(POOL, written, "en")
    assert [written[start:end].strip() for start, end in found.invented] == invented


def test_a_share_is_that_of_stems_and_none_without() -> None:
    assert compare(POOL, "Idle workers ask schedulers; giraffes sleep.", "en").grounded == 0.5
    assert compare(POOL, "It is so.", "en").grounded is None
    assert compare(POOL, "Das Archiv wird kopiert.", "en", "de").grounded is None


def test_a_copied_stretch_without_blanks_is_longer_than_a_phrase() -> None:
    source = "研究人员在九个夏天里测量了四十个池塘的水温。树荫下的池塘比露天的凉爽得多。"
    phrase = "研究人员在九个夏天里记录变暖情况。"
    assert compare(source, phrase, "zh").invented == ()
    graft = "研究人员在九个夏天里测量了四十个池塘并赞扬优雅风格与精心准备。"
    assert compare(source, graft, "zh").invented == ((0, len(graft)),)


def test_a_denial_is_excused_by_what_it_speaks_of() -> None:
    """Another denial of the page says nothing of it."""
    source = "Logs are not written twice. The pool closes idle connections."
    assert found(source, "Giraffes must never sleep upright.") == {"negations", "invented"}
    assert found(source, "Nothing writes logs twice.") == set()


def test_places_are_those_of_the_written_text() -> None:
    written = "It was 47 km, said Ms. Brandt."
    differences = compare("It was 74 km, said Ms. Keller.", written, "en")
    assert [written[start:end] for start, end in differences.figures] == ["47 km"]
    assert [written[start:end] for start, end in differences.names] == ["Brandt"]


def test_names_and_negations_of_a_translation_are_not_compared() -> None:
    differences = compare("Germany has no coast of 35 km.", "Deutschland hat eine Küste von 53 km.", "en", "de")
    assert [differences.names, differences.negations, len(differences.figures)] == [[], (), 1]


def test_a_refusal_is_one_whatever_it_says_of_the_rest() -> None:
    source = "The bridge over the Elbe was built in 1895."
    assert compare(source, "I'm sorry, but I can't help with that.", "en").refused
    assert not compare(source, "The Elbe bridge is not younger than 1895.", "en").refused
    assert not compare("I can not swim, he said.", "He said: I cannot swim.", "en").refused


def test_sentences_of_the_prompt_are_leaks() -> None:
    prompt = ["Keep every figure, date, name and unit exactly as the text has it."]
    text = f"The bridge is long. {prompt[0]}"
    assert compare("The bridge is long.", text, "en", prompt=prompt).leaks


ASKED = (
    "Rewrite the text between the two lines of dashes in plain and correct sentences.",
    "Summarize the text in one paragraph.",
)


@pytest.mark.parametrize(
    ("written", "leaked"),
    [
        ("This is a summary of the text. The bridge is long.", "This is a summary of the text."),
        ("The bridge is long. The text was rewritten in one paragraph.", "The text was rewritten in one paragraph."),
        ("The bridge between the two lines of dashes is long.", "between the two lines of dashes"),
        ("The bridge has one long span.", None),
        ("The bridge is long, in one word.", None),
    ],
)
def test_what_speaks_of_the_task_is_a_leak(written: str, leaked: str | None) -> None:
    found = compare("The bridge is long, and has a span.", written, "en", prompt=ASKED)
    assert [written[start:end].strip() for start, end in found.leaks] == ([leaked] if leaked else [])
    assert not found.figures or not leaked


def test_a_source_about_texts_may_be_rewritten() -> None:
    source = "The editor rewrote the summary of the text, one paragraph at a time."
    assert not compare(source, "A summary of the text was rewritten paragraph by paragraph.", "en", prompt=ASKED).leaks
    source = "The text is old, and its ink has faded."
    assert not compare(source, "The text is old. A paragraph of the text vanished.", "en", prompt=ASKED).leaks


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_against_itself_has_no_difference_but_that_it_is_copied(language: str) -> None:
    for pair in PAIRS:
        assert found(pair.source, pair.source, language) == set()
    whole = "\n".join(pair.source for pair in PAIRS if pair.language == language)
    assert not whole or compare(whole, whole, language).copied == 1


@given(st.text(), st.sampled_from(LANGUAGES))
def test_any_text_against_itself_has_no_difference(text: str, language: str) -> None:
    assert found(text, text, language) == set()


@given(st.permutations(range(3)), st.sampled_from(PAIRS))
def test_the_order_of_sentences_does_not_matter(order: list[int], pair: object) -> None:
    text = plain(pair.source)  # type: ignore[attr-defined]
    parts = [text[start:end].strip() for start, end in sentences(text)]
    moved = [parts[at] for at in order if at < len(parts)] + parts[3:]
    joined = ("" if pair.language == "zh" else " ").join(moved)  # type: ignore[attr-defined]
    assert found(text, joined, pair.language) == set()  # type: ignore[attr-defined]


@given(st.integers(0, 10**12), st.sampled_from("٠०০๐０"))
def test_digits_of_any_script_are_digits(number: int, zero: str) -> None:
    written = "".join(chr(ord(zero) + int(digit)) for digit in str(number))
    assert [figure.value for figure in read(plain(written), "en").figures] == [number]


def test_plain_text_is_as_long_as_the_text() -> None:
    text = "’１２％ –  «a» 10 000"
    assert len(plain(text)) == len(text)


def test_every_vocabulary_is_whole() -> None:
    for code in LANGUAGES:
        words = vocabulary(code)
        assert {*words.months.values()} == {*range(1, 13)}, code
        assert {*words.weekdays.values()} == {*range(1, 8)}, code
        assert words.negations, code
        assert words.persons, code


def test_copies_and_repetitions_are_shares_of_n_grams() -> None:
    words = [f"w{at}" for at in range(40)]
    assert copies(words, words) == (1.0, 40)
    assert copies(words, words[:10] + ["x"] * 10).longest == 10
    assert copies(words, words[:3]) == (0.0, 0)
    assert repeated(words) == 0
    assert repeated(["a", "b", "c", "d"] * 50) > 0.9


def test_time_grows_with_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted are the pairs of sentences that are compared: one denial per paragraph is compared with each sentence."""
    from pipeline_tasks.text.faith import overlap

    calls: list[str] = []
    own = overlap.root_of

    def counted(word: str, words: Vocabulary) -> str:
        calls.append(word)
        return own(word, words)

    monkeypatch.setattr(overlap, "root_of", counted)
    counts = []
    for times in (10, 20):
        text = "\n".join(f"{pair.source}" for pair in PAIRS[:1]) * times
        calls.clear()
        compare(text, text, "en")
        counts.append(len(calls))
    assert counts[1] <= 2.2 * counts[0]


@pytest.mark.parametrize("sign", ["x", "1", "-", "1.", "漢"])
def test_a_text_without_spaces_is_read_to_its_end(sign: str) -> None:
    """A line of base64, a ruler, a model in a loop: their squares would take longer than a test may."""
    text = sign * 200_000
    found_in = read(text, "en")
    assert all(0 <= code.start < code.end <= len(text) for code in found_in.codes)


def test_an_address_is_no_figure() -> None:
    assert found("Write to <mail.24+x@lake.example>.", "Write to us.") == set()
    assert [code.value for code in read("x, a.b+7@c-d.example; e@f.example", "en").codes] == [
        "a.b+7@c-d.example",
        "e@f.example",
    ]
