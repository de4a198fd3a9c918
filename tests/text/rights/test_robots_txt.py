"""robots.txt files: who may fetch what agrees with protego and with Python's own parser, and any bytes are read."""

from urllib.robotparser import RobotFileParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protego import Protego

from pipeline_tasks.text.rights.robots import MOST_BYTES, Robots, essential

AGENTS = ("GPTBot", "CCBot", "ClaudeBot")
SITE = "https://a.example"

_agents = st.sampled_from(["*", *AGENTS, "OtherBot"])
_paths = st.sampled_from(["/", "/a", "/a/b", "/b", "/c.html"])
_rules = st.tuples(st.sampled_from(["Allow", "Disallow"]), _paths)
_groups = st.tuples(st.lists(_agents, min_size=1, max_size=3, unique=True), st.lists(_rules, min_size=1, max_size=4))


def written(groups: list[tuple[list[str], list[tuple[str, str]]]]) -> str:
    lines = []
    for agents, rules in groups:
        lines += [*(f"User-agent: {agent}" for agent in agents), *(f"{kind}: {path}" for kind, path in rules), ""]
    return "\n".join(lines)


@given(st.lists(_groups, max_size=4), _paths)
def test_an_agent_is_closed_out_where_protego_says_so(
    groups: list[tuple[list[str], list[tuple[str, str]]]], path: str
) -> None:
    text, url = written(groups), SITE + path
    for agent in AGENTS:
        closed = list(Robots(text.encode(), [agent]).disallowed(url))
        assert bool(closed) == (not Protego.parse(text).can_fetch(url, agent))
        for signal in closed:
            assert signal.value in text.splitlines()
            assert path.startswith(signal.value.removeprefix("Disallow: "))


@given(
    st.lists(_agents, min_size=1, max_size=4, unique=True),
    st.lists(_paths, min_size=1, max_size=4, unique=True),
    _paths,
)
def test_files_without_allow_are_read_as_python_reads_them(agents: list[str], closed: list[str], path: str) -> None:
    """`robotparser` takes the first rule and not the longest, so only files in which that is the same."""
    text = written([([agent], [("Disallow", each) for each in closed]) for agent in agents])
    parser = RobotFileParser()
    parser.parse(text.splitlines())
    for agent in AGENTS:
        signals = list(Robots(text.encode(), [agent]).disallowed(SITE + path))
        assert bool(signals) == (not parser.can_fetch(agent, SITE + path))


@given(st.binary(max_size=400) | st.text(alphabet="User-agent: *\nDisallow/$#Content-Usage=n,\r\0", max_size=400))
def test_any_bytes_are_a_file(body: bytes | str) -> None:
    data = body.encode() if isinstance(body, str) else body
    whole, short = Robots(data, AGENTS), Robots(essential(data), AGENTS)
    for url in (f"{SITE}/a?b", "https://[/", ""):
        assert list(whole.disallowed(url)) == list(short.disallowed(url))
        assert list(whole.preferences(url)) == list(short.preferences(url))


@pytest.mark.parametrize(
    ("text", "agent", "group"),
    [
        ("User-agent: *\nDisallow: /", "GPTBot", "*"),
        ("User-agent: gptbot\nDisallow:", "GPTBot", "gptbot"),
        ("User-agent: bot\nDisallow: /", "GPTBot", None),
        ("User-agent: Google\nUser-agent: Google-Extended\nDisallow: /", "Google-Extended", "google-extended"),
        ("User-agent: GPTBot*\nDisallow: /", "GPTBot", "gptbot"),
        ("Disallow: /", "GPTBot", None),
        ("User-agent: CCBot/2.0\nDisallow: /", "CCBot", "ccbot"),
        ("User-agent CCBot\nDisallow /", "CCBot", "ccbot"),
    ],
)
def test_an_agent_follows_one_group(text: str, agent: str, group: str | None) -> None:
    assert Robots(text.encode(), [agent]).group_of(agent) == group


def test_a_preference_is_of_its_group_and_its_longest_path() -> None:
    text = b"""
User-agent: GPTBot
Content-Usage: train-ai=y
User-agent: *
Content-Usage: /private/ train-ai=n, search=n
Content-Usage: train-ai=y
Content-Usage: /*.pdf$ train-ai=n
"""

    def said(path: str) -> list[tuple[str, str]]:
        return [(each.agent, each.value) for each in Robots(text, ("GPTBot", "CCBot")).preferences(SITE + path)]

    gptbot = ("GPTBot", "train-ai=y")
    assert said("/") == [("*", "train-ai=y"), gptbot]
    assert said("/private/x") == [("*", "train-ai=n"), ("*", "search=n"), gptbot]
    assert said("/a.pdf") == [("*", "train-ai=n"), gptbot]


def test_of_many_preferences_the_first_thousand_count() -> None:
    lines = [f"Content-Usage: /{number}/ train-ai=n" for number in range(3_000)]
    read = Robots("\n".join(["User-agent: *", *lines]).encode(), AGENTS)
    said = [len(list(read.preferences(f"{SITE}/{number}/"))) for number in (0, 999, 1000)]
    assert said == [1, 1, 0]


def test_a_file_of_nothing_but_groups_takes_no_longer_than_another() -> None:
    body = b"User-agent: a\nUser-agent: b\nDisallow: /*a*b*c\n" * 12_000
    assert len(body) > MOST_BYTES
    assert [each.agent for each in Robots(body, ("A", "B")).disallowed(f"{SITE}/{'abc' * 300}")] == ["A", "B"]


def test_thousands_of_agents_with_thousands_of_rules_take_no_longer_than_a_few() -> None:
    names = b"".join(b"User-agent: bot%d\nSitemap: /s\n" % number for number in range(8_000))
    rules = b"Disallow: /x\n" * 15_000
    read = Robots(names + b"User-agent: GPTBot\n" + rules, AGENTS)
    assert [each.agent for each in read.disallowed(f"{SITE}/x")] == ["GPTBot"]


def test_rules_for_others_are_not_those_of_the_group_before() -> None:
    read = Robots(b"User-agent: GPTBot\nDisallow: /a\nUser-agent: other\nSitemap: s\nDisallow: /b", AGENTS)
    assert [len(list(read.disallowed(SITE + path))) for path in ("/a", "/b")] == [1, 0]


@pytest.mark.parametrize("line", ["Disallow: /a", "Dissallow: /a", "disallow /a"])
def test_evidence_is_the_rule_whose_field_is_misspelled(line: str) -> None:
    read = Robots(f"User-agent: GPTBot\n{line}".encode(), AGENTS)
    assert [each.value for each in read.disallowed(f"{SITE}/a/b")] == ["Disallow: /a"]


@pytest.mark.parametrize("cut", range(1, 4))
def test_a_path_that_is_cut_by_the_bound_closes_nothing(cut: int) -> None:
    head, last = b"User-agent: *\nAllow: /\n", b"\nDisallow: /private"
    body = head + b"#" * (MOST_BYTES - len(head) - len(last) + len(b"private") - cut + 1) + last
    assert not list(Robots(essential(body), AGENTS).disallowed(f"{SITE}/p"))
    assert not list(Robots(body, AGENTS).disallowed(f"{SITE}/priva"))
