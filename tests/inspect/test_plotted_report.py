"""`refinery look report --to`: a page that opens offline, and each of its plots as SVG and PNG."""

import re
import struct
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.inspect.report.distributions import AFTER, BEFORE, before_and_after
from pipeline_tasks.plots.drawing import COLORS, png, svg
from pipeline_tasks.plots.plot import Plot, base_spec
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.store.reading import read_manifest
from tests import small_root

SCRIPT = "<script>alert(1)</script>"
STYLESHEET = Path(__file__).parents[2] / "plugins/refinery_airflow/templates/static/refinery.css"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_root.build(tmp_path_factory.mktemp("plots")).root


def names_plot(name: str) -> Plot:
    rows = [{"name": name, "rows": 3}]
    color = {"field": "name", "type": "nominal", "scale": {"domain": [name], "range": ["--plot-1"]}}
    encoding = {"x": {"field": "rows", "type": "quantitative"}, "y": {"field": "name", "type": "nominal"}}
    spec = base_spec(rows) | {"mark": "bar", "encoding": {**encoding, "color": color}}
    return Plot("Names", spec, ("name", "rows"), [(name, 3)])


def test_a_page_of_a_snapshot_opens_offline_and_has_every_plot(
    root: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["look", "report", root, "--snapshot", small_root.DAYS[1], "--plots", str(tmp_path / "a" / "b")]) == 0
    folder = tmp_path / "a" / "b"
    assert capsys.readouterr().out.strip() == str(folder / "report.html")
    text = (folder / "report.html").read_text()
    version = version_log.current(root, small_root.RECIPE, small_root.DAYS[1])
    assert f"{version.documents:,} documents" in text
    assert f"Compared with {small_root.DAYS[0]}" in text
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", text)
    assert "<script" not in text
    drawn = {path.stem for path in folder.glob("*.svg")}
    assert {"funnel", "room_to_bounds", "over_days_chars"} <= drawn
    assert drawn == {path.stem for path in folder.glob("*.png")}
    assert text.count("<svg ") == len(drawn)
    again = tmp_path / "again"
    assert main(["look", "report", root, "--snapshot", small_root.DAYS[1], "--plots", str(again)]) == 0
    assert {path.name: path.read_bytes() for path in again.iterdir()} == {
        path.name: path.read_bytes() for path in folder.iterdir()
    }


def test_a_plot_is_drawn_without_a_browser_and_its_texts_are_escaped() -> None:
    drawn = svg(names_plot(SCRIPT))
    assert SCRIPT in "".join(ET.fromstring(drawn).itertext())
    assert "<script" not in drawn
    assert COLORS["--plot-1"] in drawn
    image = png(names_plot("a"))
    assert image.startswith(b"\x89PNG")
    assert struct.unpack(">I", image[16:20])[0] > 2 * 560


def test_a_plot_fetches_nothing() -> None:
    plot = names_plot("a")
    fetching = Plot("", {**plot.spec, "data": {"url": "http://127.0.0.1:1/rows.json"}}, (), ())
    with pytest.raises(ValueError, match=re.escape("http://127.0.0.1:1/rows.json")):
        svg(fetching)


def test_the_colors_are_those_of_the_pages() -> None:
    css = STYLESHEET.read_text()
    light = dict(re.findall(r"(--[a-z0-9-]+): light-dark\((#[0-9a-f]{6}),", css))
    assert {name: light[name] for name in COLORS} == dict(COLORS)


def test_before_the_stages_are_all_rows_and_after_them_those_that_are_left(root: str) -> None:
    version = version_log.current(root, small_root.RECIPE, small_root.DAYS[1])
    columns = {column: (first, last, profiles) for column, first, last, profiles in before_and_after(root, version)}
    first, last, profiles = columns["chars"]
    assert first == "extract"
    rows = read_manifest(root, version.manifests[last])
    assert profiles[AFTER]["count"] == rows.rows
    begin = read_manifest(root, version.manifests[first])
    assert profiles[BEFORE]["count"] == begin.rows + begin.metrics["rejects"].get("chars", {"count": 0})["count"]
    assert profiles[BEFORE]["count"] > profiles[AFTER]["count"]
