"""Numbers on the pages: short, with a unit, and never in exponents."""

import pytest


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("number", 1234567, "1,234,567"),
        ("number", None, "-"),
        ("percent", 0.4567, "45.7 %"),
        ("percent", None, "-"),
        ("points", 0.0312, "+3.1 points"),
        ("points", -0.0001, "0.0 points"),
        ("figure", 1331.4, "1,331"),
        ("figure", 0.76123, "0.7612"),
        ("figure", None, "-"),
        ("size", 999, "999 B"),
        ("size", 1_234_000, "1.2 MB"),
        ("size", 5e16, "50,000.0 TB"),
        ("seconds", 0.4493, "0.449 s"),
        ("seconds", 59.99, "60 s"),
        ("seconds", 250.4, "4 min 10 s"),
        ("seconds", 7530, "2 h 5 min"),
        ("seconds", None, "-"),
        ("usd", 1234.5, "$1,234.50"),
        ("usd", 0.0000113, "$0.000011"),
        ("usd", 0, "$0.00"),
        ("usd", None, "-"),
    ],
)
def test_numbers_are_short_and_have_a_unit(name: str, value: float | None, shown: str) -> None:
    from refinery_airflow.pages import rendering as refinery_rendering

    assert refinery_rendering.PAGES.filters[name](value) == shown


def test_the_style_has_both_themes_and_fetches_nothing() -> None:
    from refinery_airflow.pages import rendering as refinery_rendering

    style = refinery_rendering.static_file("refinery.css").decode()
    assert style.count("light-dark(") > 20
    assert "url(" not in style
    assert "@import" not in style
