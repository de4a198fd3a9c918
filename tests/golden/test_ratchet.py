"""Quality against gold that people made: floors are in `ratchet.json`, and only ever go up.

A change that makes extraction or language identification better raises them:
`REFINERY_RATCHET=raise pytest tests/golden/test_ratchet.py` writes what was measured wherever it is above the floor.
"""

import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_tasks.stages import filter_language
from pipeline_tasks.stages.extract import METHODS
from tests.documents import documents
from tests.golden.extraction import gold_scores, lines, mean, without_pictured_formulas

FLOORS = Path(__file__).parent / "ratchet.json"
RAISE = "REFINERY_RATCHET"
DIGITS = 4

OURS = ("blocks", "resiliparse")
"""The default and the fast one; the libraries of the other methods are pinned, and have their level nightly."""

pytestmark = pytest.mark.slow


def judged(floors: Mapping[str, float], measured: Mapping[str, float]) -> list[str]:
    """Return what is below its floor, or has none."""
    low = [f"{name}: {value:.4f} < {floors[name]}" for name, value in measured.items() if value < floors.get(name, 0)]
    return low + [f"{name}: {value:.4f} has no floor" for name, value in measured.items() if name not in floors]


def raised(floors: Mapping[str, float], measured: Mapping[str, float]) -> dict[str, float]:
    """Return the floors raised to the measured values, rounded down; no floor gets lower."""
    rounded = {name: math.floor(value * 10**DIGITS) / 10**DIGITS for name, value in measured.items()}
    return {name: max(floors.get(name, 0), rounded.get(name, 0)) for name in sorted({*floors, *rounded})}


def hold(measured: Mapping[str, float]) -> None:
    floors = json.loads(FLOORS.read_text())
    if os.environ.get(RAISE) == "raise":
        floors = raised(floors, measured)
        FLOORS.write_text(json.dumps(floors, indent=2) + "\n")
    print(json.dumps(measured))
    low = judged(floors, measured)
    assert not low, (
        f"{'; '.join(low)}. Mend it; if it is new or better, {RAISE}=raise writes floors; they never go down"
    )


def test_floors_only_go_up() -> None:
    floors = {"a": 0.5, "b": 0.5}
    assert raised(floors, {"a": 0.4, "b": 0.60009, "c": 0.1}) == {"a": 0.5, "b": 0.6, "c": 0.1}
    assert judged(floors, {"a": 0.4999, "b": 0.5, "c": 1}) == ["a: 0.4999 < 0.5", "c: 1.0000 has no floor"]
    assert judged(floors, raised(floors, {"a": 0.4, "b": 0.6})) == []


def test_formulas_are_read_unless_they_are_pictures_with_hidden_sources() -> None:
    shown = b"<p>of <math><mi>k</mi></math> and <img alt=pier></p>"
    hidden = b'<span style="display: none;"><math><mi>k</mi></math></span><img alt="{k}">'
    assert without_pictured_formulas(b"<p>of " + hidden + b" days</p>" + shown) == b"<p>of  days</p>" + shown


@pytest.mark.parametrize(
    "method", [pytest.param(name, marks=() if name in OURS else pytest.mark.nightly) for name in METHODS]
)
def test_extraction_keeps_its_level(shared_data: Path, method: str) -> None:
    hold({f"extract.{method}.{name}": value for name, value in gold_scores(shared_data, method).items()})


CODES = dict(
    re.findall(
        r"(\w+):(\w+)",
        """
    afr:af als:sq amh:am arb:ar azj:az bel:be ben:bn bod:bo bos:bs bre:br bul:bg cat:ca ces:cs chv:cv cmn:zh cos:co
    cym:cy dan:da deu:de div:dv ekk:et ell:el eng:en epo:eo eus:eu fin:fi fra:fr fry:fy gla:gd gle:ga glg:gl glv:gv
    guj:gu hat:ht heb:he hin:hi hrv:hr hun:hu hye:hy ido:io ina:ia ind:id isl:is ita:it jav:jv jpn:ja kan:kn kat:ka
    kaz:kk khk:mn khm:km kir:ky kmr:ku kor:ko lao:lo lat:la lit:lt ltz:lb lvs:lv mal:ml mar:mr mkd:mk mlt:mt mya:my
    nb:no nld:nl nno:nn nob:no npi:ne oci:oc oss:os pan:pa pbu:ps pes:fa plt:mg pol:pl por:pt que:qu roh:rm ron:ro
    rus:ru san:sa sin:si slk:sk slv:sl som:so spa:es src:sc srp:sr sun:su swa:sw swe:sv swh:sw tam:ta tat:tt tel:te
    tgk:tg tgl:tl tha:th tuk:tk tur:tr uig:ug ukr:uk urd:ur uzn:uz vie:vi wln:wa ydd:yi yor:yo zlm:ms
        """,
    )
)
"""ISO 639-3 codes of the gold, and the codes that lid.176 has for the same languages."""

UNKNOWN = ("lg", "mi", "om", "sn", "st", "ti", "tn", "ts", "xh", "zu")
"""Languages of the sentences that lid.176 does not know: they are not scored."""


def test_languages_keep_their_level(shared_data: Path) -> None:
    every = lines(shared_data / "lid" / "lid-sentences.jsonl.gz")
    gold = [
        line for line in every if line["lang"] in CODES or (line["code"] == "iso639-1" and line["lang"] not in UNKNOWN)
    ]
    table = documents([line["text"] for line in gold]).combine_chunks()
    identified = pa.Table.from_batches(
        filter_language.identify(iter(table.to_batches()), params=filter_language.Params(keep=()))
    )
    languages = [CODES.get(line["lang"], line["lang"]) for line in gold]
    right = [
        expected == language for expected, language in zip(languages, identified["language"].to_pylist(), strict=True)
    ]
    kinds = {line["kind"] for line in gold}
    assert len(kinds) > 1
    measured = {
        f"language.{kind}": mean(
            float(correct) for line, correct in zip(gold, right, strict=True) if line["kind"] == kind
        )
        for kind in kinds
    }
    hold(measured)
