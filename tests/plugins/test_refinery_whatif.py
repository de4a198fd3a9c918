"""The what-if page: bounds from the address, what they would keep, and lines for the recipe that are right."""

import html
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from pipeline_tasks.flow.plan import dag_of
from pipeline_tasks.inspect.whatif import whatif
from pipeline_tasks.inspect.whatif.stages import stage_forecasts
from pipeline_tasks.publish.logs import version_log
from tests.documents import documents
from tests.fasttext_file import write_model
from tests.known_dags import known_dags
from tests.markup import assert_inert
from tests.refining import commit_parent, refined
from tests.stages.test_filter_quality import PROSE

SCRIPT = "<script>alert(1)</script>"
PAGE = "/whatif/web/2026-11-19"
LINES = PROSE.split("\n")
TEXTS = ["\n".join(LINES[:count]) for count in range(len(LINES) + 1)]
LANGUAGES = (["en", "de", SCRIPT] * len(TEXTS))[: len(TEXTS)]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with one snapshot that `filter_quality` has judged; a language and a source try to run a script."""
    root = tmp_path_factory.mktemp("root")
    table = documents(TEXTS, language=pa.array(LANGUAGES, pa.string()))
    sources = pa.array([SCRIPT if at % 2 else "crawl" for at in range(len(TEXTS))], pa.string())
    table = table.set_column(table.schema.get_field_index("source"), "source", sources)
    publish(root, "2026-11-19", refined(root, "filter_quality", commit_parent(root, [table]))[0])
    packs = root / "mine.yaml"
    packs.write_text("de: {}")
    mine = refined(root, "filter_quality", commit_parent(root, [table], "other"), {"packs": str(packs)})
    publish(root, "2026-11-20", mine[0])
    publish(root, "2026-11-21", "")
    return root


def publish(root: Path, snapshot: str, path: str) -> version_log.Version:
    manifests = {"filter_quality": path} if path else {}
    entry = {"recipe": "web", "snapshot": snapshot, "landing": "", "manifests": manifests, "verdicts": {}}
    return version_log.append(str(root), entry | {"prefix": "", "documents": 9, "tokens": 1000, "sequences": 1})


def shown(visitor: Any, **changes: str) -> Any:
    return visitor.get(PAGE, params=changes)


def address(visitor: Any, **fields: str) -> str:
    """Return where a form that sends these fields leads to."""
    answer = visitor.get(PAGE, params=fields, follow_redirects=False)
    assert answer.status_code == 303
    return str(answer.headers["location"]).removeprefix("/refinery")


def tile(page: str, name: str) -> str:
    [value] = re.findall(rf"<dt>{name}</dt><dd>(.*?)(?:<small>.*?)?</dd>", page)
    return " ".join(re.sub("<[^>]+>", "", value).split())


def lines(page: str, name: str) -> Any:
    [text] = re.findall(rf'<pre tabindex="0" aria-label="{name}">([^<]+)</pre>', page)
    return yaml.safe_load(html.unescape(text))


def fields(page: str) -> dict[str, str]:
    return dict(re.findall(r'name="([\w.]+)" type="\w+" value="([^"]*)"', page))


def test_a_snapshot_leads_to_its_bounds(visitor: Any) -> None:
    assert f'href="/refinery{PAGE}"' in visitor.get("/snapshot/web/2026-11-19").text
    assert "/whatif/" not in visitor.get("/snapshot/web/2026-11-21").text
    page = shown(visitor)
    assert page.status_code == 200
    assert fields(page.text)["gopher_quality.min_doc_words"] == "50"
    assert 'step="any" min="0" max="1"' in page.text
    assert "For the recipe" not in page.text


def test_the_prediction_is_that_of_the_command(visitor: Any, root: Path) -> None:
    change = {"gopher_quality.min_doc_words": "80"}
    page = shown(visitor, **change).text
    forecast = whatif(
        str(root), version_log.current(str(root), "web", "2026-11-19"), ["gopher_quality.min_doc_words=80"]
    )
    assert 0 < forecast.whole.then < forecast.whole.now
    assert tile(page, "Kept") == f"{forecast.whole.now} → to {forecast.whole.then}"
    now, then = forecast.characters
    assert tile(page, "Tokens, estimated") == f"1,000 → to {1000 * then / now:,.0f}"
    assert lines(page, "Lines for the recipe") == {"filter_quality": {"gopher_quality": {"min_doc_words": 80}}}
    assert "refinery whatif" in page
    assert "--set gopher_quality.min_doc_words=80" in page
    [spec] = re.findall(r'data-spec="([^"]+)"', page)
    counts = {(row["name"], row["series"]): row["rows"] for row in json.loads(html.unescape(spec))["data"]["values"]}
    assert counts["gopher_quality:short_doc", "then"] == forecast.reasons["gopher_quality:short_doc"][1]


def test_an_address_has_what_was_changed_and_nothing_else(visitor: Any) -> None:
    """A form without a script sends every field; what is as it was leaves the address, which can then be shared."""
    sent = fields(shown(visitor).text) | {"gopher_quality.min_doc_words": " 30 ", "language": "", "packs": "builtin"}
    assert address(visitor, **sent) == f"{PAGE}?gopher_quality.min_doc_words=30"
    assert fields(visitor.get(address(visitor, **sent)).text)["gopher_quality.min_doc_words"] == "30"
    assert address(visitor, **{"gopher_quality.min_doc_words": ""}) == PAGE
    short = {"filter_quality.gopher_quality.min_words": "30"}
    assert address(visitor, **short) == f"{PAGE}?gopher_quality.min_doc_words=30"


def test_bounds_of_one_language_are_lines_of_a_file_of_packs(visitor: Any) -> None:
    page = shown(visitor, **{"language": "de", "de.gopher_quality.min_doc_words": "30", "c4.max_curly_brackets": "1"})
    assert fields(page.text)["de.gopher_quality.min_doc_words"] == "30"
    assert '<input type="hidden" name="c4.max_curly_brackets" value="1">' in page.text
    assert lines(page.text, "Lines for a file of packs") == {"de": {"gopher_quality": {"min_doc_words": 30}}}
    assert lines(page.text, "Lines for the recipe") == {"filter_quality": {"c4": {"max_curly_brackets": 1}}}
    assert "skipped" in page.text, "builtin packs skip stop words in German"


def test_other_packs_are_chosen_by_name(visitor: Any) -> None:
    page = shown(visitor, packs="none").text
    assert "<option selected>none</option>" in page
    assert lines(page, "Lines for the recipe") == {"filter_quality": {"packs": "none"}}
    assert "that no stored signal has" in shown(visitor, packs="fineweb2").text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gopher_quality.min_doc_words": "few"}, "the bound must be a number"),
        ({"gopher_quality.min_doc_words": "-3"}, "must be a number from 0"),
        ({"gopher_repetition.dup_line_frac": "1.5"}, "must be a number from 0 to 1"),
        ({"gopher_quality.min_dok_words": "3"}, "gopher_quality.min_doc_words"),
        ({"xx.gopher_quality.min_doc_words": "3"}, "no language has the code"),
        ({"packs": "/etc/passwd"}, "choose one of builtin, fineweb2, web, none"),
        ({"words": "unicode"}, "decides how signals are computed"),
        ({"": "3"}, "write PROFILE.BOUND=NUMBER"),
        ({f"x{at}.y": "1" for at in range(101)}, "101 changes are too many"),
    ],
)
def test_a_wrong_bound_is_said_and_what_was_typed_is_kept(visitor: Any, changes: dict[str, str], message: str) -> None:
    page = shown(visitor, **changes)
    assert page.status_code == 422
    [alert] = re.findall(r'role="alert"><p>(.*?)</p>', page.text)
    assert message in html.unescape(alert)
    assert fields(page.text)["gopher_quality.min_doc_words"] == changes.get("gopher_quality.min_doc_words", "50")
    key, value = next(iter(changes.items()))
    assert f"<strong>{value}</strong>" in page.text
    assert key in page.text
    assert "Kept" not in page.text


def test_what_is_typed_or_stored_is_escaped(visitor: Any) -> None:
    for changes in (
        {SCRIPT: "1"},
        {"c4.max_curly_brackets": SCRIPT},
        {"language": SCRIPT},
        {"packs": f'"{SCRIPT}'},
        {},
    ):
        page = shown(visitor, **changes)
        assert_inert(page.text, SCRIPT)
        assert not re.findall(r"<(?:input|select)(?![^>]*name=)", page.text)


def test_what_is_not_there_is_a_page_that_says_so(visitor: Any) -> None:
    for path in ("/whatif/web/2031-01-01", "/whatif/nothing/2026-11-19", "/whatif/web/2026-11-21"):
        page = visitor.get(path)
        assert (page.status_code, "<h1>Not found</h1>" in page.text) == (404, True)
    mine = visitor.get("/whatif/web/2026-11-20")
    assert (mine.status_code, "name it: --set packs=PATH" in mine.text) == (200, True)
    assert mine.text.count("<form") == 1, "the box that every page has"


def test_bounds_of_other_stages_are_predicted_with_lines_and_a_trial(
    visitor: Any, mixed_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.mixed_root import DAYS, RECIPE

    monkeypatch.setenv("REFINERY_ROOT", str(mixed_root))
    path = f"/whatif/{RECIPE}/{DAYS[0]}"
    assert f'href="/refinery{path}"' in visitor.get(f"/snapshot/{RECIPE}/{DAYS[0]}").text
    plain = visitor.get(path)
    assert plain.status_code == 200
    assert "Run as a trial" not in plain.text
    known = fields(plain.text)
    assert "filter_language.threshold" in known
    assert visitor.get(path, params=known, follow_redirects=False).headers["location"] == f"/refinery{path}"
    page = visitor.get(path, params={"filter_language.threshold": "0.999"}).text
    assert lines(page, "Lines for the recipe")["filter_language"] == {"threshold": 0.999}
    assert "refinery run " in page
    assert "--sample 0.05" in page
    assert "--set filter_language.threshold=0.999" in page
    assert "/dags/" not in page, "nobody has wired the recipe"
    with known_dags(dag_of(RECIPE)):
        assert f'href="/dags/{dag_of(RECIPE)}"' in visitor.get(path, params={"filter_language.threshold": "0.999"}).text
    wrong = visitor.get(path, params={"filter_language.threshold": SCRIPT})
    assert wrong.status_code == 422
    assert_inert(wrong.text, SCRIPT)


def test_a_classifiers_own_bound_has_a_field_lines_with_all_minima_and_a_trial(
    visitor: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edu = {"model": write_model(tmp_path / "edu.bin", {"the": "high", "of": "low"}), "label": "__label__high"}
    minima = {"perplexity": 0.12, "redundancy": 0.0}
    params = {"classifiers": {"edu": {**edu, "minimum": 0.4}}, "minima": minima}
    table = documents(TEXTS, language_score=pa.array([0.9] * len(TEXTS)))
    path, manifest = refined(tmp_path, "score_quality", commit_parent(tmp_path, [table]), params)
    version = version_log.append(
        str(tmp_path),
        {"recipe": "web", "snapshot": "2026-11-19", "landing": "", "manifests": {"score_quality": path}}
        | {"verdicts": {}, "prefix": "", "documents": manifest.rows, "tokens": 0, "sequences": 0},
    )
    monkeypatch.setenv("REFINERY_ROOT", str(tmp_path))
    known = fields(shown(visitor).text)
    assert known["score_quality.minima.edu"] == "0.4"
    assert visitor.get(PAGE, params=known, follow_redirects=False).headers["location"] == f"/refinery{PAGE}"
    assert (
        address(visitor, **{"score_quality.classifiers.edu.minimum": "0.7"}) == f"{PAGE}?score_quality.minima.edu=0.7"
    )
    page = shown(visitor, **{"score_quality.minima.edu": "0.7", "score_quality.minimum": "0.3"}).text
    written = lines(page, "Lines for the recipe")["score_quality"]
    assert written == {"minimum": 0.3, "minima": {"edu": 0.7, "perplexity": 0.12}}
    [*_, together] = stage_forecasts(
        str(tmp_path), version, ["score_quality.minima.edu=0.7", "score_quality.minimum=0.3"]
    )
    [row] = re.findall(r'<th scope="row">score_quality</th>(.*?)</tr>', page)
    kept, after = together.kept
    assert f'<td class="n">{after - kept:+d}</td><td>exact</td>' in row
    assert "refinery run " in page
    assert "only a lower one is stored" not in shown(visitor).text
    assert "nearest are" in shown(visitor, **{"score_quality.minima.edo": "0.7"}).text.lower()
