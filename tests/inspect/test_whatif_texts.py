"""What-if says how much text another `beta` would give, from the stored scores of blocks, as runs with it decide."""

import json
from typing import Any

import pytest

from pipeline_tasks.cards import stage_card
from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.whatif.stages import is_of_stage
from pipeline_tasks.inspect.whatif.texts import TextForecast, is_dial, text_forecasts
from pipeline_tasks.stages import NAMES
from tests.archives import http, response
from tests.chain import Chain, How, refined

DAY = "2026-11-19"
PROSE = "The committee met on {day} to hear what the {thing} had cost, and asked for a report by the end of the month. "
THINGS = ("bridge", "school", "harbor", "library", "market", "tunnel", "garden", "clinic")


def page(number: int) -> str:
    """Return a page whose main text is a third of what it shows: news, notes, links, other news and a form."""
    thing = THINGS[number % len(THINGS)]
    prose = "".join(
        f"<p>{PROSE.format(day=f'day {at}', thing=thing) * (1 + at % 3)}</p>" for at in range(number % 5 + 2)
    )
    links = "".join(f'<li><a href="/{at}">More on the {other}</a></li>' for at, other in enumerate(THINGS))
    teasers = "".join(f"<div><h4>The {other}</h4><p>It was opened again last week.</p></div>" for other in THINGS[:4])
    side = f"<aside><h3>Read more</h3>{teasers}</aside>"
    notes = f"<section><h3>Notes</h3><p>Of the {thing}, see <a href='/n'>the notes of {number}</a>.</p></section>"
    form = "<form><label>Your name</label><input><p>We write twice a month.</p></form>"
    body = f"<nav><ul>{links}</ul></nav><main><h1>The {thing} {number}</h1>{prose}{notes}{side}</main><footer>{form}</footer>"
    return f"<html><head><title>The {thing} {number}</title></head><body>{body}</body></html>"


def words_of(chain: Chain) -> int:
    blocks = [row["blocks"] for row in chain.rows("extract", columns=["blocks"])]
    return sum(block["words"] for page in blocks for block in page or () if block["kept"])


@pytest.fixture(scope="module")
def chains(tmp_path_factory: pytest.TempPathFactory) -> dict[float, Chain]:
    """The same pages by three values of `beta`."""
    folder = tmp_path_factory.mktemp("beta")
    landing = folder / "landing" / DAY
    landing.mkdir(parents=True)
    pages = (response(f"https://example.org/{number}", http(page(number).encode())) for number in range(24))
    (landing / "a.warc").write_bytes(b"".join(pages))
    written = "name: pages\nstages: {ingest: {}, extract: {min_chars: 1, beta: BETA}, dedup_exact: {}}\n"
    made = {}
    for beta in (0.25, 1.0, 4.0):
        recipe = folder / "pages.yaml"
        recipe.write_text(written.replace("BETA", str(beta)))
        made[beta] = refined(str(folder / f"root-{beta:g}"), str(landing), How(str(recipe)))
    return made


@pytest.mark.parametrize(("beta", "then"), [(1.0, 4.0), (4.0, 1.0), (4.0, 0.25), (0.25, 4.0)])
def test_words_are_foretold_as_a_run_chooses_them(chains: dict[float, Chain], beta: float, then: float) -> None:
    now = chains[beta]
    (forecast,) = text_forecasts(now.root, now.version, [f"extract.beta={then}"])
    assert forecast.words[0] == words_of(now) != forecast.words[1]
    assert forecast.words[1] == pytest.approx(words_of(chains[then]), rel=0.05)
    assert forecast.rows == 24
    assert (forecast.gaining > 0, forecast.losing > 0) == (then > beta, then < beta)


def test_a_dial_is_of_a_stage_of_the_version_alone(chains: dict[float, Chain]) -> None:
    version = chains[1.0].version
    assert is_dial("extract.beta=2", version)
    assert not any(is_dial(change, version) for change in ("extract.min_chars=2", "embed.beta=2", "a--b--C.beta=2"))
    assert is_of_stage("extract.min_chars=2", version)
    assert not is_of_stage("black--__main__--X.y=1", version)


def test_the_same_value_changes_nothing(chains: dict[float, Chain]) -> None:
    now = chains[4.0]
    (forecast,) = text_forecasts(now.root, now.version, ["extract.beta=4"])
    words = words_of(now)
    assert forecast == TextForecast("extract.beta", (4.0, 4.0), 24, (words, words), 0, 0)


def test_the_command_foretells_texts_beside_rows(
    chains: dict[float, Chain], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["whatif", chains[1.0].root, "--set", "extract.beta=2", "--set", "extract.min_chars=50", "--json"]) == 0
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert [forecast["key"] for forecast in facts["texts"]] == ["extract.beta"]
    assert [forecast["key"] for forecast in facts["stages"]] == ["extract.min_chars"]
    assert main(["whatif", chains[1.0].root, "--set", "extract.beta=2"]) == 0
    assert "the texts of 24 documents have" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "named"),
    [("extract.beta=9", "beta must be a number from 0.25 to 4"), ("extract.beta=much", "must be a number")],
)
def test_no_value_of_a_dial_is_refused(chains: dict[float, Chain], change: str, named: str) -> None:
    now = chains[1.0]
    with pytest.raises(RecipeError, match=named):
        text_forecasts(now.root, now.version, [change])


def test_every_dial_is_a_param_within_its_range() -> None:
    cards = [card for card in map(stage_card, NAMES) if card.dials]
    assert cards
    for card in cards:
        assert card.dials
        for dial in card.dials(card.params()):
            assert dial.least <= dial.now <= dial.most
            assert getattr(card.params(), dial.param) == dial.now
