"""The texts of messages, and the sections of the runbook that they name."""

import json
import re
from pathlib import Path

import pytest

from pipeline_tasks.alerts.alert import KINDS, RUNBOOK, Alert
from pipeline_tasks.alerts.message import MOST_LINES, MOST_TEXT, Message, Origin, log_lines, mail, slack, webhook
from pipeline_tasks.alerts.verdicts import gate_awaits, gate_refused, task_failed
from pipeline_tasks.errors import StorageBusy

PROJECT = Path(__file__).parents[2]
ORIGIN = Origin(
    "refine", "of_1", "extract.gate", "https://airflow.example.org/dags/refine/runs/of_1/tasks/extract.gate"
)


def message(*alerts: Alert, origin: Origin = ORIGIN) -> Message:
    return Message(origin, alerts, RUNBOOK)


@pytest.mark.parametrize("kind", KINDS)
def test_every_alert_has_a_section_in_the_runbook(kind: str) -> None:
    page, anchor = Alert(kind, "", (), "").runbook(RUNBOOK).split("#")
    headings = [line[3:] for line in (PROJECT / page).read_text().splitlines() if line.startswith("## ")]
    assert KINDS[kind].heading in headings
    assert anchor in {heading.lower().replace(" ", "-") for heading in headings}


def test_a_message_is_the_same_for_each_try_and_another_after_a_clear() -> None:
    first = gate_awaits("extract", "snapshot 1", ("retention is 0.1",), "2026-11-20 12:00 UTC")
    later = gate_awaits("extract", "snapshot 1", ("retention is 0.1",), "2026-11-20 13:00 UTC")
    assert message(first).key() == message(later).key()
    cleared = Origin("refine", "of_1", "extract.gate", clears=7)
    assert message(first).key() != message(first, origin=cleared).key()
    assert message(first).key() != message(gate_refused("extract", "snapshot 1", ())).key()


def test_partitions_that_fail_differently_are_one_message() -> None:
    failures = [task_failed("extract.partition", "snapshot 1", StorageBusy(f"part {part}")) for part in range(2)]
    assert len({message(failure).key() for failure in failures}) == 1


def test_a_long_verdict_is_cut_in_every_channel() -> None:
    refused = message(gate_refused("extract", "snapshot 1", tuple(f"{'x' * 90} {line}" for line in range(500))))
    numbers = webhook(refused)["alerts"][0]["numbers"]
    assert (len(numbers), numbers[-1]) == (MOST_LINES + 1, "and 460 more lines")
    assert all(len(block["text"]["text"]) <= MOST_TEXT for block in slack(refused)["blocks"][:-1])
    assert len(mail(refused)[1]) < 10_000


def test_what_to_do_stays_in_a_message_of_slack_whose_numbers_are_cut() -> None:
    lines = tuple(f"{'&' * 90} {line}" for line in range(30))
    (section, _) = slack(message(gate_refused("extract", "snapshot 1", lines, "a reason " * 200)))["blocks"]
    text = section["text"]["text"].splitlines()
    assert len(section["text"]["text"]) <= MOST_TEXT
    assert text[1] == f">{'&amp;' * 90} 0"
    assert re.fullmatch(r">and \d+ more lines", text[-3])
    assert text[-2].startswith("_What to do:_ The run has failed")
    assert text[-1].endswith("#a-gate-refused")


@pytest.mark.parametrize(
    "name", ["a\nBcc: eve@example.org", "a\r\n\r\nbody", "a\x1b[2Jb", "a\u2028b", "\U000e0001" * 9_000]
)
def test_a_headline_is_one_line_whatever_names_it_has(name: str) -> None:
    failure = message(task_failed("land", f"snapshot {name} in refine", None))
    subject, _ = mail(failure)
    body = slack(failure)
    texts = [subject, failure.title, body["text"], log_lines(failure)[0], webhook(failure)["alerts"][0]["headline"]]
    assert all(text.isprintable() for text in texts)
    assert all(len(block["text"]["text"]) <= MOST_TEXT for block in body["blocks"][:-1])
    assert subject.startswith("[critical] The task land of snapshot ")


def test_slack_makes_no_mention_or_link_of_plain_text() -> None:
    section, context = slack(message(gate_refused("extract", "snapshot @here https://evil.example", ())))["blocks"]
    assert section["text"]["verbatim"] is True
    assert context["elements"][0]["verbatim"] is True


def test_what_a_message_shows_is_no_markup_of_its_channel() -> None:
    hostile = message(gate_refused("extract", "snapshot <!channel> <script>", ("<b> & <https://evil.example|here>",)))
    body = json.dumps(slack(hostile))
    assert "<!channel>" not in body
    assert "<https://evil" not in body
    _, html = mail(hostile)
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_the_log_repeats_no_numbers_that_it_has() -> None:
    refused = gate_refused("extract", "snapshot 1", ("retention is 0.1",))
    slow = Alert("slow_partitions", "Slow", ("p99 400 s",), "Look.")
    assert log_lines(message(refused, slow)) == [
        "The gate of extract refuses snapshot 1",
        "    runbook: docs/how-to/operate/respond-to-alerts.md#a-gate-refused",
        "Slow",
        "    p99 400 s",
        "    Look.",
        "    runbook: docs/how-to/operate/respond-to-alerts.md#slow-partitions",
    ]
