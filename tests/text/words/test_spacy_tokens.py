"""English words are cut as spaCy's blank tokenizer cuts them."""

# ruff: noqa: RUF001 -- similar signs are distinguished here

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.base.characters import classes
from pipeline_tasks.text.words.cutting import cut_spacy
from pipeline_tasks.text.words.spacy_english import exceptions
from pipeline_tasks.text.words.spacy_tokens import cut_chunk


def words(text: str) -> list[str]:
    cut_up = []
    for chunk in text.split():
        data = chunk.encode()
        ends = np.empty(2 * len(data), np.int64)
        count = cut_chunk(np.frombuffer(data, np.uint8), 0, len(data), *classes(), ends, 0)
        begins = [0, *ends[: count - 1].tolist()]
        cut_up += [data[begin:end].decode() for begin, end in zip(begins, ends[:count].tolist(), strict=True)]
    return cut_up


@pytest.mark.parametrize(
    ("text", "cut_up"),
    [
        ("I can't, won't. They’ve gone!", "I ca n't , wo n't . They ’ve gone !"),
        ("(e.g. the U.S. at 9am)", "( e.g. the U.S. at 9 am )"),
        ("state-of-the-art 2018-09-25 a--b and/or x/y", "state - of - the - art 2018 - 09 - 25 a -- b and/or x / y"),
        ("$5 costs 10km... or 20%.", "$ 5 costs 10 km ... or 20 % ."),
        ("See https://foo.org/a-b/c?d=e, mail a-b@foo.org.", "See https://foo.org/a-b/c?d=e , mail a-b@foo.org ."),
        ("end.Begin one,two 1,000 f(x): show():", "end . Begin one , two 1,000 f(x ): show ( ):"),
        ("“Quoted” 'S', ''x'' C++. :-)", "“ Quoted ” 'S ' , '' x '' C++ . :-)"),
        ("fine🙂 but😀😎 glad🥲 go🟢go", "fine 🙂 but 😀 😎 glad🥲 go🟢go"),
        ("όπου,ΐα όπου,αν Ϊα,ЂА АБ,ВГ ʔa,ʔb ʔ.", "όπου,ΐα όπου , αν Ϊα,ЂА АБ , ВГ ʔa , ʔb ʔ ."),
        ("a\u2329b\u232a 1مم 5سم³", "a\u2329b \u232a 1 مم 5 سم³"),
        (
            "http://8.8.8.8:53/a-b http://10.0.0.1/a-b 8.8.8.8/a-b",
            "http://8.8.8.8:53/a-b http://10.0.0.1 / a - b 8.8.8.8/a-b",
        ),
        ("1.02.99.4/a 1.2.099.4/a 01.2.3.4/a 1.2.3.255/a", "1.02.99.4/a 1.2.099.4 / a 01.2.3.4 / a 1.2.3.255 / a"),
        ("223.0.0.1?a=b 224.0.0.1?a=b 172.31.0.1?a=b", "223.0.0.1?a=b 224.0.0.1?a = b 172.31.0.1?a = b"),
        ("é://a.com/x-y ée://a.com/x-y", "é://a.com / x - y ée://a.com/x-y"),
        ("(at 20°C.) 20°F.”", "( at 20 ° C . ) 20 ° F . ”"),
        ("so…:-)", "so … :- )"),
        ("(well:-))", "( well:- ) )"),
        (":):)½", ":) : ) ½"),
        ("🙂nuthin’", "🙂 nuthin’"),
    ],
)
def test_words_of_spacy(text: str, cut_up: str) -> None:
    assert words(text) == cut_up.split()


def test_exceptions_spell_their_words() -> None:
    assert ["".join(parts) for parts in exceptions().values()] == list(exceptions())
    assert len(exceptions()) > 1000


SIGNS = st.text(st.sampled_from("aBz09.,;:'’\"()[]<>/-–—…~@#$€%+*^= \n\té中☺_!?")) | st.text()


@given(text=SIGNS)
def test_nothing_but_white_space_is_lost(text: str) -> None:
    clean = text.encode("utf-8", "ignore").decode()
    assert "".join(words(clean)) == "".join(clean.split())
    data = np.frombuffer(clean.encode(), np.uint8)
    room = max(1, len(data))
    lengths, hashes, kinds = np.empty(room, np.int32), np.empty(room, np.uint64), np.empty(room, np.uint8)
    count = cut_spacy(data, 0, len(data), *classes(), lengths, hashes, kinds)
    assert count == len(words(clean))
    assert lengths[:count].sum() == len("".join(clean.split()))


def test_a_long_run_takes_linear_time() -> None:
    assert words("!" * 100_000) == ["!"] * 100_000
    assert words("." * 100_000) == ["." * 100_000]
