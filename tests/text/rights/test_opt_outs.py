"""Opt-outs as public specifications write them: each case names the text that it is from."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.stages.check_rights import AGENTS
from pipeline_tasks.text.rights.directives import header_signals
from pipeline_tasks.text.rights.markup import markup_signals
from pipeline_tasks.text.rights.robots import Robots, essential
from pipeline_tasks.text.rights.signals import OPT_OUTS, Signal

CASES = [json.loads(line) for line in Path(__file__).with_name("opt_outs.jsonl").read_text().splitlines()]
NAMED = frozenset(agent.lower() for agent in AGENTS)


def said(case: Mapping[str, Any]) -> list[Signal]:
    if "http" in case:
        return [*header_signals(case["http"], NAMED)]
    if "page" in case:
        page = case["page"]
        text = page if isinstance(page, str) else page[0] * page[1] + page[2]
        return markup_signals(text.encode(case.get("encoding", "utf-8")), NAMED)
    url = f"https://a.example{case['path']}"
    robots = Robots(essential(case["robots"].encode()), case.get("agents", AGENTS))
    return [*robots.disallowed(url), *robots.preferences(url)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_an_opt_out_is_read_as_its_text_says(case: Mapping[str, Any]) -> None:
    signals = {signal.signal for signal in said(case)} & {*OPT_OUTS}
    assert signals == {*case["expected"]}, case["source"]


def test_cases_are_of_texts() -> None:
    assert len({case["name"] for case in CASES}) == len(CASES) >= 80
    assert all(case["source"] for case in CASES)
