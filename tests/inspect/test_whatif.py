"""A forecast from stored signals is what a real run with those bounds then does, to the row."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.inspect.whatif import Decision, Forecast, failures, whatif
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.stage import replace_column
from pipeline_tasks.stages.filter_quality import FILTERS, Params, filter_texts
from pipeline_tasks.store.reading import read_manifest
from tests.documents import documents
from tests.refining import commit_parent, refined, resealed, rows
from tests.stages.test_filter_quality import PROSE

LINES = PROSE.split("\n")
TEXTS = [
    *("\n".join(LINES[:count]) for count in range(len(LINES) + 1)),
    *(f"Home\n{PROSE}\nSee [1] the {{brace}}." for _ in range(3)),
    "the be " * 60,
    "\n".join([*LINES, *LINES[:3]]),
    PROSE.replace(".", " ..."),
    "lorem ipsum dolor",
]
LANGUAGES = (["en", "de", "zh", None] * len(TEXTS))[: len(TEXTS)]
LISTLESS = [name for name in FILTERS if name != "c4_badwords"]
SOURCES = (["crawl", "crawl", "books"] * len(TEXTS))[: len(TEXTS)]


def table() -> pa.Table:
    documents_ = documents(TEXTS, language=pa.array(LANGUAGES, pa.string()))
    return documents_.set_column(0, "source", pa.array(SOURCES, pa.string()))


def published(root: Path, params: Mapping[str, Any] | None = None) -> tuple[str, version_log.Version]:
    """Publish a snapshot that only `filter_quality` has refined; return its parent's path and its version."""
    parent = commit_parent(root, [table().slice(0, 5), table().slice(5)])
    path, _ = refined(root, "filter_quality", parent, params)
    entry = {"recipe": "web", "snapshot": "s", "landing": "", "manifests": {"filter_quality": path}, "verdicts": {}}
    return parent, version_log.append(str(root), entry | {"prefix": "", "documents": 0, "tokens": 0, "sequences": 0})


def by(root: Path, manifest: Manifest, column: str) -> dict[str, int]:
    return dict(Counter(name or "(none)" for name in rows(root, manifest).to_pydict().get(column, [])))


def kept(changes: Mapping[str, Any]) -> dict[str, int]:
    return {name: change.then for name, change in changes.items() if change.then}


@pytest.mark.parametrize(
    ("changes", "params"),
    [
        ([], {}),
        (["gopher_quality.min_doc_words=30"], {"gopher_quality": {"min_doc_words": 30}}),
        (["gopher_quality.min_words=80"], {"gopher_quality": {"min_doc_words": 80}}),
        (
            ["c4.min_num_sentences=1", "c4.max_curly_brackets=2"],
            {"c4": {"min_num_sentences": 1, "max_curly_brackets": 2}},
        ),
        (
            [
                "filter_quality.gopher_repetition.dup_line_frac=0",
                "fineweb.line_punct_thr=1",
                "gopher_quality.min_stop_words=0",
            ],
            {
                "gopher_repetition": {"dup_line_frac": 0},
                "fineweb": {"line_punct_thr": 1.0},
                "gopher_quality": {"min_stop_words": 0},
            },
        ),
    ],
)
@pytest.mark.parametrize("base", [{}, {"profiles": [*reversed(LISTLESS)], "words": "unicode", "packs": "fineweb2"}])
def test_a_forecast_is_what_a_run_then_does(
    tmp_path: Path, base: dict[str, Any], changes: list[str], params: dict[str, Any]
) -> None:
    parent, version = published(tmp_path, base)
    forecast = whatif(str(tmp_path), version, changes)
    _, now = refined(tmp_path, "filter_quality", parent, base)
    _, then = refined(tmp_path, "filter_quality", parent, base | params)
    assert (forecast.whole.rows, forecast.whole.now, forecast.whole.then) == (len(TEXTS), now.rows, then.rows)
    assert {reason: pair[0] for reason, pair in forecast.reasons.items() if pair[0]} == now.rejected
    assert {reason: pair[1] for reason, pair in forecast.reasons.items() if pair[1]} == then.rejected
    assert kept(forecast.languages) == by(tmp_path, then, "language")
    assert kept(forecast.sources) == by(tmp_path, then, "source")
    assert sum(change.rows for change in forecast.languages.values()) == len(TEXTS)
    evidence = [json.loads(failed) for failed in rows(tmp_path, then, "rejects")["evidence"].to_pylist()]
    fails = Counter(rule["rule"] for failed in evidence for rule in failed)
    assert {reason: pair[1] for reason, pair in forecast.fails.items() if pair[1]} == fails


@pytest.mark.parametrize(
    ("changes", "params"),
    [
        (["packs=none", "gopher_quality.min_stop_words=0"], {"packs": "none", "gopher_quality": {"min_stop_words": 0}}),
        (["de.gopher_quality.min_words=100"], "{de: {gopher_quality: {min_doc_words: 100, min_stop_words: null}}}"),
        (["zh.c4.min_num_sentences=3"], "{zh: {c4: {min_num_sentences: 3}, gopher_quality: {min_stop_words: null}}}"),
    ],
)
def test_a_forecast_per_language_is_what_a_run_with_such_packs_does(
    tmp_path: Path, changes: list[str], params: dict[str, Any] | str
) -> None:
    old = tmp_path / "old.yaml"
    old.write_text("any: {gopher_quality: {min_stop_words: null}}")
    parent, version = published(tmp_path, {"packs": str(old)} if isinstance(params, str) else {})
    if isinstance(params, str):
        new = tmp_path / "new.yaml"
        new.write_text(params[:-1] + ", any: {gopher_quality: {min_stop_words: null}}}")
        params, changes = {"packs": str(new)}, [f"packs={old}", *changes]
    forecast = whatif(str(tmp_path), version, changes)
    _, then = refined(tmp_path, "filter_quality", parent, params)
    assert {reason: pair[1] for reason, pair in forecast.reasons.items() if pair[1]} == then.rejected
    assert kept(forecast.languages) == by(tmp_path, then, "language")


def test_packs_with_uncounted_stop_words_are_refused(tmp_path: Path) -> None:
    first, other = tmp_path / "mine.yaml", tmp_path / "other.yaml"
    first.write_text("de: {}")
    other.write_text("fr: {}")
    _, version = published(tmp_path)
    with pytest.raises(RecipeError, match=r"packs=fineweb2: .* ar, bg, .* gopher_quality "):
        whatif(str(tmp_path), version, ["packs=fineweb2"])
    with pytest.raises(RecipeError, match=r"'de' .*'deu'"):
        whatif(str(tmp_path), version, ["deu.gopher_quality.min_doc_words=3"])
    root = tmp_path / "root"
    _, version = published(root, {"packs": str(first)})
    for changes in ([], [f"packs={other}"]):
        with pytest.raises(RecipeError, match="--set packs=PATH"):
            whatif(str(root), version, changes)
    assert whatif(str(root), version, [f"packs={first}"]).whole.rows == len(TEXTS)


@pytest.mark.parametrize("name", FILTERS)
def test_a_bound_changes_no_signal_and_no_text(name: str) -> None:
    card, texts, languages = FILTERS[name], table()["text"].combine_chunks(), table()["language"].combine_chunks()
    before = card.compute_signals(texts, languages, 0, card.limits())
    assert card.bounds
    for limit in card.bounds:
        after = card.compute_signals(texts, languages, 0, card.limits(**{limit: 7.5}))
        assert np.array_equal(before.signals, after.signals, equal_nan=True), limit
        assert before.texts.equals(after.texts), limit


def test_some_bounds_matter(tmp_path: Path) -> None:
    _, version = published(tmp_path)

    def then(change: str) -> Forecast:
        return whatif(str(tmp_path), version, [change])

    assert then("gopher_quality.min_doc_words=1000").whole.then == 0
    assert then("c4.max_curly_brackets=2").whole.then > then("c4.max_curly_brackets=0").whole.then > 0


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("gopher_quality.min_dok_words=3", r"'gopher_quality\.min_dok_words=3'.*: gopher_quality\.min_doc_words"),
        ("gofer_quality.min_doc_words=3", r"'gofer_quality\.min_doc_words=3'.*: gopher_quality\.min_doc_words"),
        ("gopher_quality.min_doc_words", r"'gopher_quality\.min_doc_words'.*PROFILE\.BOUND=NUMBER"),
        ("gopher_quality.min_doc_words=few", r"gopher_quality\.min_doc_words=few"),
        ("gopher_quality.min_doc_words=nan", r"gopher_quality\.min_doc_words=nan"),
        ("gopher_quality.min_doc_words=-1", r"gopher_quality\.min_doc_words: .* 0 .*-1"),
        ("de.gopher_repetition.dup_line_frac=1.01", r"de\.gopher_repetition\.dup_line_frac: .* 0 to 1.*1\.01"),
        ("c4.min_words_per_line=5", r"c4\.min_words_per_line: .*min_num_sentences"),
        ("fineweb.short_line_length=20", r"fineweb\.short_line_length: .*line_punct_thr"),
        ("words=unicode", "--set words: "),
        ("fineweb.line_punct_thr=0", r"fineweb\.line_punct_thr: .*gopher_repetition, gopher_quality, c4"),
    ],
)
def test_changes_that_signals_do_not_show_are_refused(tmp_path: Path, change: str, named: str) -> None:
    profiles = ["gopher_repetition", "gopher_quality", "c4"]
    profiles += [] if change.startswith("fineweb.line") else ["fineweb"]
    _, version = published(tmp_path, {"profiles": profiles})
    with pytest.raises(RecipeError, match=named):
        whatif(str(tmp_path), version, [change])


def test_a_sample_counts_for_all_rows_and_says_how_many_were_read(tmp_path: Path) -> None:
    _, version = published(tmp_path)
    change = ["gopher_quality.min_doc_words=1000"]
    whole, sample = (whatif(str(tmp_path), version, change, most) for most in (len(TEXTS), 1))
    assert whole.rows_read == len(TEXTS)
    assert 0 < sample.rows_read < len(TEXTS)
    assert (sample.whole.rows, sample.whole.now, sample.whole.then) == (len(TEXTS), whole.whole.now, 0)
    assert sum(now for now, _ in sample.reasons.values()) == pytest.approx(len(TEXTS) - whole.whole.now, abs=2)


def test_characters_are_those_of_the_rows_that_are_kept(tmp_path: Path) -> None:
    _, version = published(tmp_path)
    kept = rows(tmp_path, read_manifest(str(tmp_path), version.manifests["filter_quality"]))["chars"].to_pylist()
    assert whatif(str(tmp_path), version, []).characters == (sum(kept), sum(kept))
    assert whatif(str(tmp_path), version, ["gopher_quality.min_doc_words=1000"]).characters == (sum(kept), 0)


def test_a_version_without_the_stage_is_refused(tmp_path: Path) -> None:
    entry = {"recipe": "web", "snapshot": "s", "landing": "", "manifests": {}, "verdicts": {}, "prefix": ""}
    version = version_log.append(str(tmp_path), entry | {"documents": 0, "tokens": 0, "sequences": 0})
    with pytest.raises(RecipeError, match=r"version 1 of recipe web .*filter_quality"):
        whatif(str(tmp_path), version, [])


def test_signals_of_an_earlier_version_are_refused() -> None:
    params = Params(profiles=("fineweb",))
    (batch,) = filter_texts(iter(table().to_batches()), params=params)
    signals = batch.column("signals_fineweb")
    names = [name.replace("char_duplicates_ratio", "char_dup_ratio") for name in signals.type.names]
    earlier = replace_column(batch, "signals_fineweb", pa.StructArray.from_arrays(signals.flatten(), names=names))
    with pytest.raises(RecipeError, match=r"signals_fineweb .*'char_duplicates_ratio'"):
        failures(earlier, Decision(params, {}))


def test_signals_that_do_not_explain_the_decisions_are_refused(tmp_path: Path) -> None:
    _, version = published(tmp_path)
    path = tmp_path / version.manifests["filter_quality"]
    resealed(path, **json.loads(path.read_text().replace('"c4:curly_bracket":', '"c4:lorem_ipsum":')))
    with pytest.raises(ContractError, match=re.escape(f"{path}: ") + ".*c4:curly_bracket.*c4:lorem_ipsum"):
        whatif(str(tmp_path), version, [])


def test_a_bound_of_all_languages_names_those_that_keep_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It printed a bound that no row was judged by, and no change."""
    pack = tmp_path / "mine.yaml"
    pack.write_text("{en: {fineweb: {new_line_ratio: 0.2}}, zh: {fineweb: {new_line_ratio: null}}}")
    _, version = published(tmp_path, {"packs": str(pack)})
    changes = [f"packs={pack}", "fineweb.new_line_ratio=0.05"]
    forecast = whatif(str(tmp_path), version, changes)
    assert list(forecast.own_bounds["fineweb.new_line_ratio"]) == ["en", "zh"]
    assert forecast.languages["en"].then == forecast.languages["en"].now
    arguments = ["whatif", str(tmp_path), *(part for change in changes for part in ("--set", change))]
    assert main(arguments) == 0
    line = "  own bound, which stays: en 0.2, zh skipped; to change it: --set en.fineweb.new_line_ratio=0.05"
    assert line in capsys.readouterr().out.splitlines()
    assert main([*arguments, "--set", "en.fineweb.new_line_ratio=0.05", "--json"]) == 0
    own = json.loads(capsys.readouterr().out.splitlines()[-1])["own_bounds"]
    assert own == {"fineweb.new_line_ratio": {"zh": None}}
    assert whatif(str(tmp_path), version, [f"packs={pack}", "fineweb.line_punct_thr=0.05"]).own_bounds == {}


def test_the_command_prints_both_forms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, version = published(tmp_path)
    arguments = [
        "whatif",
        str(tmp_path),
        "--recipe",
        "web",
        "--snapshot",
        "s",
        "--set",
        "gopher_quality.min_doc_words=1000",
    ]
    assert main(arguments) == 0
    assert "gopher_quality.min_doc_words: 50 -> 1000" in capsys.readouterr().out
    assert main([*arguments, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (answer["rows"], answer["then"], answer["bounds"]) == (
        len(TEXTS),
        0,
        {"gopher_quality.min_doc_words": [50, 1000]},
    )
    assert set(answer["languages"]) == {"en", "de", "zh", "(none)"}
    assert main(["whatif", str(tmp_path), "--set", "nothing=1"]) == 78
    assert "nearest to 'nothing'" in capsys.readouterr().err
    assert version.recipe == "web"
