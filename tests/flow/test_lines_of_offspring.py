"""What a run says of a stage that makes rows: texts that were generated are rows that came in beside the others."""

from typing import Any

from pipeline_tasks.flow.gates import rows_of
from pipeline_tasks.flow.lines import funnel_line

REPLY: Any = {"rows_in": 100, "offspring_in": 1500, "rows": 1400, "rejected": {"toy:why": 200}, "quarantined": {}}

COST: Any = {"ran": 1, "reused": 0, "wall": 2.0}


def test_the_line_of_a_stage_adds_up() -> None:
    line = funnel_line({**REPLY, **COST})
    assert line.split() == ["100", "in", "1,500", "generated", "1,400", "kept", "200", "rejected", "2.0", "s"]
    assert "generated" not in funnel_line({**REPLY, **COST, "offspring_in": 0})


def test_what_waits_for_a_person_has_all_rows() -> None:
    assert rows_of(REPLY) == {"kept": "1,400 of 1,600 rows", "rejected, toy:why": "200"}
