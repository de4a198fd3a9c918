"""What every stage promises, and what this one rejects and adds."""

import pyarrow as pa

from pipeline_tasks.testing.stages import check_stage

TEXTS = ["One line.", "Two\nlines.", "A line that is long. " * 4]


def test_it_keeps_what_every_stage_promises() -> None:
    """Rows are conserved, and are the same for batches of any size."""
    documents = pa.table({"text": pa.array(TEXTS, pa.large_string())})
    checked = check_stage("a_stage", documents, {"max_chars": 60})
    assert checked.kept.select(["text", "n_lines"]).to_pylist() == [
        {"text": "One line.", "n_lines": 1},
        {"text": "Two\nlines.", "n_lines": 2},
    ]
    assert checked.manifest.rejected == {"a_stage:long": 1}
