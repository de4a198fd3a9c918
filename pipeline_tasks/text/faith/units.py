"""Units of measure and currencies: which can be converted into which, and by what."""

from collections.abc import Mapping
from typing import NamedTuple


class Unit(NamedTuple):
    """A dimension, and how many of its base unit this one is."""

    dimension: str
    factor: float


_TABLE = """
length    km 1000  m 1  cm 0.01  mm 0.001  µm 1e-6  nm 1e-9  mi 1609.344  ft 0.3048  in 0.0254  yd 0.9144
mass      t 1000  kg 1  g 0.001  mg 1e-6  lb 0.45359237  oz 0.028349523  jin 0.5
volume    l 1  ml 0.001  cl 0.01  hl 100  m³ 1000
area      km² 1e6  m² 1  cm² 1e-4  ha 1e4  ac 4046.8564  mu 666.6667
time      s 1  ms 0.001  min 60  h 3600  d 86400  week 604800
calendar  month 1  year 12
speed     km/h 1  m/s 3.6  mph 1.609344
power     W 1  kW 1e3  MW 1e6  GW 1e9
energy    Wh 1  kWh 1e3  MWh 1e6  GWh 1e9
data      B 1  kB 1e3  MB 1e6  GB 1e9  TB 1e12
share     % 1  ‰ 0.1
celsius   °C 1
fahrenheit °F 1
degree    ° 1
frequency Hz 1  kHz 1e3  MHz 1e6  GHz 1e9
"""

_CURRENCIES = {"€": "EUR", "$": "USD", "£": "GBP", "¥": "JPY", "￥": "CNY", "₽": "RUB", "₹": "INR", "₩": "KRW"}

UNITS: Mapping[str, Unit] = {
    **{
        name: Unit(dimension, float(factor))
        for dimension, *pairs in (line.split() for line in _TABLE.strip().splitlines())
        for name, factor in zip(pairs[::2], pairs[1::2], strict=True)
    },
    **{code: Unit(code, 1.0) for code in (*_CURRENCIES.values(), "CHF", "BRL", "CAD", "AUD", "SEK", "NOK", "DKK")},
}
"""Units by their names: calendars have months, as no month has a number of days."""

SYMBOLS: Mapping[str, str] = {
    **{name: name for name in UNITS if name not in ("in", "B", "d", "jin", "mu", "week", "month", "year")},
    **_CURRENCIES,
    "US$": "USD",
    "kph": "km/h",
    "kmh": "km/h",
    "km2": "km²",
    "m2": "m²",
    "m3": "m³",
    "L": "l",
    "mL": "ml",
    "sq km": "km²",
    "sq m": "m²",
    "hrs": "h",
    "hr": "h",
    "mins": "min",
    "lbs": "lb",
    "℃": "°C",
    "° C": "°C",
    "RMB": "CNY",
    "pct": "%",
}
"""What is written for a unit in any language; those left out say something else more often."""
