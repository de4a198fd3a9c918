"""`refinery look lsh-curve` prints the curve that signatures follow, and those of published settings."""

import json

import pytest
from refinery_study import lsh_curve

from pipeline_tasks.cli.main import main


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["look", "lsh-curve", *arguments]) == 0
    return capsys.readouterr().out


def test_the_table_has_the_published_probabilities(capsys: pytest.CaptureFixture[str]) -> None:
    rows = {line.split()[0]: line.split()[1:] for line in output(capsys).splitlines() if line[:1] == "0"}
    assert {name: float(row[0]) for name, row in rows.items()} == pytest.approx(
        {"0.40": 0.009, "0.50": 0.053, "0.60": 0.211, "0.70": 0.565, "0.75": 0.772}
        | {"0.80": 0.924, "0.85": 0.988, "0.90": 1.0, "0.95": 1.0},
        abs=6e-4,
    )
    assert all(float(row[0]) + float(row[1]) == pytest.approx(1, abs=2e-4) for row in rows.values())
    assert rows["0.80"][-1] == "threshold"


def test_presets_follow_the_requested_setting(capsys: pytest.CaptureFixture[str]) -> None:
    out = output(capsys, "--bands", "20", "--rows", "13", "--presets", "--threshold", "0.72")
    assert "midpoint (1/bands)**(1/rows) = 0.794" in out
    (requested,) = (line for line in out.splitlines() if line.startswith("requested"))
    (nemo,) = (line for line in out.splitlines() if line.startswith("NeMo"))
    assert requested.split()[1:] == nemo.split()[2:]
    settings = json.loads(output(capsys, "--presets", "--json"))["settings"]
    assert len(settings) == 1 + len(lsh_curve.PRESETS)
    redpajama = next(setting for setting in settings if setting["name"] == "RedPajama-V2, 0.9")
    assert round(redpajama["curve"]["0.9"], 3) == 0.311


BOOK = {0.2: 0.006, 0.3: 0.047, 0.4: 0.186, 0.5: 0.470, 0.6: 0.802, 0.7: 0.975, 0.8: 0.9996}
"""The S-curve of 20 bands of 5 rows (Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, figure 3.8)."""

HALF = {
    (14, 8): 0.6847, (20, 13): 0.7711, (26, 11): 0.7184, (10, 20): 0.8736, (14, 9): 0.7141,
    (9, 13): 0.8186, (5, 25): 0.9215, (16, 8): 0.6736, (32, 8): 0.6186, (5, 1): 0.1294,
}  # fmt: skip
"""Where half of the pairs are candidates, by bands and rows: the binomial chances of one, two, ... bands that agree, added
as exact fractions, and halved in."""


def test_the_curve_is_the_one_of_the_literature() -> None:
    assert {similarity: lsh_curve.curve(similarity, 20, 5) for similarity in BOOK} == pytest.approx(BOOK, abs=6e-4)


def test_half_of_the_pairs_are_candidates_at_half() -> None:
    halves = {(preset.bands, preset.rows): lsh_curve.half(preset) for preset in lsh_curve.PRESETS}
    assert halves == pytest.approx(HALF, abs=1e-4)


def test_changed_words_bring_the_similarity_down_as_computed() -> None:
    words = [f"w{n}" for n in range(lsh_curve.EDITED)]
    changed = [f"x{n}" if n % 20 == 10 else word for n, word in enumerate(words)]
    before, after = ({tuple(text[at : at + 5]) for at in range(len(text) - 4)} for text in (words, changed))
    similarity = len(before & after) / len(before | after)
    assert lsh_curve.edits(similarity, 5) == pytest.approx(10)


@pytest.mark.parametrize("wrong", [["--bands", "0"], ["--rows", "-1"], ["--threshold", "1.5"], ["--ngram", "0"]])
def test_settings_that_make_no_sense_are_refused(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["look", "lsh-curve", *wrong]) == 78
    message = capsys.readouterr().err
    assert " ".join(wrong) in message
    assert "bands, rows and ngram are 1 or more, the threshold is 0 to 1" in message
