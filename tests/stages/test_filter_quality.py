"""filter_quality keeps prose, names every rule that a text fails, and forgets no row."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.binding import bind
from pipeline_tasks.errors import RecipeError, SchemaBroken
from pipeline_tasks.filters import c4
from pipeline_tasks.recipe import load_recipe
from pipeline_tasks.schema import REASON_PATTERN
from pipeline_tasks.stage import FilePath
from pipeline_tasks.stages import filter_quality
from pipeline_tasks.stages.filter_quality import STAGE, Params, filter_texts
from tests.documents import documents
from tests.refining import commit_parent, refined

PROSE = """A heron stands in the shallows for hours before it moves.
Otters come to the bank at dusk and quarrel over every fish they have caught.
Under the bridge, where the current is slow, pike wait with great patience.
Nobody knows how old the biggest of them may be.
Farmers nearby built a small weir that keeps their meadows wet during dry summers.
When rain returns, frogs call so loudly that sleeping becomes difficult.
Children catch minnows there, count what they hold, and let everything go again.
By winter all of this lies quiet beneath clear ice."""
TEXTS = [
    PROSE,
    "Too short.",
    "the be " * 60,
    f"{PROSE}\nHome\nSee [1] the {{brace}}.",
    "",
    None,
    f"Home\n{PROSE}",
    "lorem ipsum dolor",
]
LANGUAGES = ["en"] * len(TEXTS)


def table(texts: list[str | None] = TEXTS, languages: list[str] = LANGUAGES) -> pa.Table:
    return documents(texts, language=pa.array(languages, pa.string()))


def judged(texts: list[str | None], languages: list[str] | None = None, **params: object) -> pa.Table:
    docs = table(texts, languages or ["en"] * len(texts))
    return pa.Table.from_batches(filter_texts(iter(docs.to_batches()), params=bind(STAGE, params)))


def rules(text: str, language: str = "en", **params: object) -> list[str]:
    evidence = judged([text], [language], **params)["evidence"][0].as_py()
    return [failed["rule"] for failed in json.loads(evidence)] if evidence else []


def test_prose_is_kept_whole() -> None:
    kept = judged([PROSE])
    assert kept["reason"].to_pylist() == [None]
    assert kept["text"].to_pylist() == [PROSE]


def test_later_profiles_judge_what_c4_leaves_and_the_text_stays_whole_unless_edits_are_asked_for() -> None:
    text = f"Home\n{PROSE}\nAbout us"
    kept, edited = judged([text]), judged([text], edit=True)
    assert (kept["text"].to_pylist(), edited["text"].to_pylist()) == ([text], [PROSE])
    assert (kept["chars"].to_pylist(), edited["chars"].to_pylist()) == ([len(text)], [len(PROSE)])
    assert (kept["edit_spans"].to_pylist(), len(edited["edit_spans"][0])) == ([[]], 3)
    assert kept["signals_fineweb"] == edited["signals_fineweb"]
    line_rules, prose = kept["signals_c4"][0].as_py(), kept["signals_fineweb"][0].as_py()
    assert (line_rules["lines"], line_rules["few_words_lines"], prose["prose_lines"]) == (10, 2, 8)


BLOCKS = st.sampled_from(
    [
        PROSE,
        "Heading",
        "--force",
        "    def run():\n        return 1",
        "| a | b |\n| 1 | 2 |",
        "- one\n- two",
        "\tx = {}",
        "",
    ]
)


@given(st.lists(BLOCKS, min_size=1, max_size=8), st.sampled_from(["\n", "\n\n", "\n\n\n"]))
def test_no_profile_takes_structure_from_a_kept_text(blocks: list[str], gap: str) -> None:
    text = gap.join([PROSE, *blocks])
    out = judged([text], profiles=("c4", "cc_net", "gopher_quality"), c4={"max_curly_brackets": 99})
    assert out["reason"].to_pylist() == [None]
    assert out["text"].to_pylist() == [text]
    assert out["chars"].to_pylist() == [len(text)]


def test_a_rejected_text_is_not_edited() -> None:
    text = f"Home\n{PROSE}\nThe end of {{all}} things."
    rejected = judged([text], edit=True)
    assert rejected["reason"].to_pylist() == ["c4:curly_bracket"]
    assert rejected["text"].to_pylist() == [text]


def test_every_failing_rule_is_evidence_in_order() -> None:
    assert rules("Have lorem ipsum { 1 2 ...", profiles=("gopher_quality", "c4", "fineweb")) == [
        "gopher_quality:short_doc",
        "gopher_quality:too_many_ellipsis",
        "gopher_quality:too_many_end_ellipsis",
        "gopher_quality:below_alpha_threshold",
        "gopher_quality:enough_stop_words",
        "c4:lorem_ipsum",
        "c4:curly_bracket",
        "c4:too_few_sentences",
        "fineweb:short_line_ratio",
    ]
    failed = json.loads(judged(["Too short."])["evidence"][0].as_py())[0]
    assert failed == {"rule": "gopher_repetition:top_2_gram", "value": 1.0, "bound": 0.2}


def test_first_rule_in_the_order_of_profiles_is_the_reason() -> None:
    turned = judged(["Too short."], profiles=("c4", "gopher_quality"))
    assert turned["reason"].to_pylist() == ["c4:too_few_sentences"]
    assert [name for name in turned.column_names if name.startswith("signals_")] == [
        "signals_c4",
        "signals_gopher_quality",
    ]


def test_limits_are_overridden_one_by_one() -> None:
    five = "Say that we have it."
    assert rules(five, profiles=("gopher_quality",)) == ["gopher_quality:short_doc"]
    assert rules(five, profiles=("gopher_quality",), gopher_quality={"min_doc_words": 5}) == []


@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({"profiles": ["gofer_quality"]}, ("'gofer_quality'", "'gopher_quality'")),
        ({"gofer_quality": {}}, ("'gofer_quality'", "'gopher_quality'")),
        ({"fineweb": {"line_punct": 1}}, ("fineweb", "'line_punct'", "'line_punct_thr'")),
        ({"fineweb": {"line_punct_thr": "few"}}, ("fineweb: line_punct_thr ", "'few'")),
        ({"fineweb": {"line_punct_thr": True}}, ("fineweb: line_punct_thr ", "True")),
        ({"dclm": {"remove_urls": "no"}}, ("dclm: remove_urls ", "'no'")),
        ({"c4_badwords": {"bad_words": {"en": 3}}}, ("c4_badwords: bad_words: en ", "3")),
        ({"limits": {"c4": {"min_sentences": 3}}}, ("c4", "'min_sentences'", "'min_num_sentences'")),
        ({"fineweb": 3}, ("fineweb ", "3")),
    ],
)
def test_unknown_names_and_wrong_types_are_refused(params: dict[str, object], named: tuple[str, ...]) -> None:
    with pytest.raises(RecipeError, match=".*".join(("filter_quality: ", *named))):
        bind(STAGE, params)


def test_limits_are_written_under_the_name_of_their_profile() -> None:
    params = bind(STAGE, {"c4": {"min_num_sentences": 3, "remove_citations": False}})
    assert params == Params(limits={"c4": {"min_num_sentences": 3.0, "remove_citations": False}})
    assert bind(STAGE, {"limits": params.limits}) == params
    assert params.limits_of("c4") == c4.Limits(min_num_sentences=3, remove_citations=False)


def test_word_and_stop_word_rules_follow_the_language() -> None:
    german = "Der Fluss ist breit und das Wasser kalt, aber die Otter schwimmen dort jeden Tag."
    assert "gopher_quality:enough_stop_words" in rules(german, "en")
    assert "gopher_quality:enough_stop_words" not in rules(german, "de")
    chinese = "".join(chr(0x4E00 + 7 * place) + ("。" if place % 25 == 24 else "") for place in range(200))
    assert rules(chinese, "zh") == []
    assert "gopher_quality:above_avg_threshold" in rules(chinese, "en")


def test_a_rule_on_stop_words_without_a_list_of_the_language_rejects_nothing_and_says_so() -> None:
    recipe = bind(STAGE, {"profiles": ["gopher_repetition", "gopher_quality"], "packs": "web"})
    enough = "gopher_quality:enough_stop_words"
    assert {code: enough in rules(PROSE, code, packs="web") for code in ("ca", "km", "de")} == {
        "ca": False, "km": False, "de": True,
    }  # fmt: skip
    assert STAGE.idle is not None
    [idle] = STAGE.idle(recipe, {"language": {"bins": {"ca": 3, "de": 5, "en": 2, "km": 1}}})
    assert idle.lacks == "no stop words of ca (3 documents), km (1 document)"
    assert STAGE.idle(recipe, {"language": {"bins": {"de": 5, "en": 2}}}) == ()
    assert STAGE.idle(replace(recipe, packs=FilePath("builtin")), {"language": {"bins": {"ca": 3}}}) == ()
    assert STAGE.unread is not None
    assert [each.lacks for each in STAGE.unread(recipe, ("fi", "ca"))] == ["no stop words of ca"]
    assert STAGE.unread(replace(recipe, profiles=("fineweb",)), ("ca",)) == ()


def test_reasons_are_on_the_card_and_fit_the_pattern() -> None:
    reasons = judged(list(TEXTS)).column("reason").drop_null().to_pylist()
    assert reasons
    assert set(reasons) <= set(STAGE.reasons)
    assert [reason for reason in STAGE.reasons if not re.match(REASON_PATTERN, reason)] == []


def test_the_card_declares_the_signals_of_each_profile() -> None:
    promised = STAGE.written(bind(STAGE, {"profiles": ["dclm", "c4"]}))
    assert promised.names == [*STAGE.writes.names, "signals_dclm", "signals_c4"]
    out = judged([PROSE], profiles=["dclm", "c4"])
    assert [out.schema.field(name).type for name in promised.names] == promised.types


def test_signals_that_were_promised_and_not_written_commit_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = replace(STAGE, writes_for=lambda _: pa.schema([pa.field("signals_other", pa.int64())]))
    monkeypatch.setattr(filter_quality, "STAGE", card)
    with pytest.raises(SchemaBroken, match=r"filter_quality .*'signals_other'"):
        refined(tmp_path, "filter_quality", commit_parent(tmp_path, [table()]))


def test_punctuation_is_no_word_of_a_language_without_spaces() -> None:
    sentences = "".join(chr(0x4E00 + 11 * place) + ("\uff0c" if place % 4 == 3 else "") for place in range(240)) + "。"
    assert "gopher_quality:below_alpha_threshold" not in rules(sentences, "zh")
    assert "gopher_quality:below_alpha_threshold" in rules(" ".join(sentences), "en")


def test_words_of_a_list_are_toxic_in_any_case_and_the_list_is_identity(tmp_path: Path) -> None:
    manifests = []
    for number, listed in enumerate(("herons\n# a comment\nOTTERS\n", "weasels\n")):
        path = tmp_path / f"list{number}"
        path.write_text(listed)
        params = {"profiles": ["seeds"], "seeds": {"toxic_words": str(path)}}
        manifests.append(
            refined(tmp_path, "filter_quality", commit_parent(tmp_path, [table([PROSE], ["en"])]), params)[1]
        )
    assert [manifest.rejected for manifest in manifests] == [{"seeds:listed_words": 1}, {}]
    assert manifests[0].fingerprint != manifests[1].fingerprint


@pytest.mark.parametrize("recipe", ["web", "web_en"])
def test_a_contents_list_is_no_document_to_the_recipes_of_the_web(recipe: str) -> None:
    """Published profiles keep it: its few sentences say what it is, and its lines are all different."""
    [step] = [step for step in load_recipe(recipe).steps if step.stage == STAGE.name]
    words = [word.strip(".,") for word in PROSE.split()]
    heads = [
        f"{nth}. {' '.join(words[(nth * step_size + 3) % len(words)] for step_size in (1, 7, 13, 29))}"
        for nth in range(len(words))
    ]
    contents = "\n".join([*PROSE.splitlines()[:6], "", *heads])
    judged_texts = judged([contents, PROSE], **step.params)
    assert judged_texts["reason"].to_pylist() == ["running_sentences:few", None]
    [failed] = json.loads(judged_texts["evidence"][0].as_py())
    assert (failed["rule"], failed["bound"]) == ("running_sentences:few", 0.25)
    assert 0.02 < failed["value"] < 0.25
