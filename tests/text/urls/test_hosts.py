"""Hosts: where they are in a URL, what kind they are, and how much of them is a public suffix."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.urls.hosts import (
    ABSENT,
    BAD,
    EXACT,
    EXCEPTION,
    NAME,
    ODD,
    WILD,
    is_address,
    label_starts,
    locate_hosts,
    public_labels,
    read_suffixes,
)
from pipeline_tasks.text.urls.lists import find_entry

RULES = """
// ===BEGIN ICANN DOMAINS===
com
uk
co.uk
*.ck
!www.ck
рф
// ===END ICANN DOMAINS===
github.io
"""


@pytest.mark.parametrize(
    ("url", "kind", "host"),
    [
        ("http://a.com/x", NAME, "a.com"),
        (" HTTP://user:pw@A.com.:80?q#f ", NAME, "A.com"),
        ("ftp://a.com#@b.com", NAME, "a.com"),
        ("http://[::1]:80/", ODD, "[::1]"),
        ("http://bücher.de", ODD, "bücher.de"),
        ("http://a..com", BAD, None),
        ("http://a b.com", BAD, None),
        ("http://a@b@c.com", BAD, None),
        ("http://a.com:8x", BAD, None),
        ("http://a.com/\n", NAME, "a.com"),
        ("http://a.com/\nx", BAD, None),
        ("//a.com", BAD, None),
        ("a.com", BAD, None),
        ("1http://a.com", BAD, None),
        ("http://", BAD, None),
        ("  ", ABSENT, None),
    ],
)
def test_hosts_by_hand(url: str, kind: int, host: str | None) -> None:
    offsets, data = views(pa.array([url, "http://x.org"], pa.large_string()))
    places, kinds = locate_hosts(offsets, data)
    assert kinds.tolist() == [kind, NAME]
    if host is not None:
        assert data[places[0, 2] : places[0, 3]].tobytes().decode() == host
    assert data[places[0, 0] : places[0, 1]].tobytes().decode() == url.strip()


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("1.2.3.4", True),
        ("255.0.0.1", True),
        ("256.0.0.1", False),
        ("01.2.3.4", False),
        ("1.2.3", False),
        ("1..3.4", False),
    ],
)
def test_addresses(text: str, outcome: bool) -> None:
    data = np.frombuffer(text.encode(), np.uint8)
    assert is_address(data, 0, len(data)) is outcome


def test_suffixes_are_those_of_registries(tmp_path: Path) -> None:
    path = tmp_path / "list.dat"
    path.write_text(RULES, encoding="utf-8")
    table, bits = read_suffixes(str(path))

    def rule(name: str) -> int:
        data = np.frombuffer(name.encode("idna"), np.uint8).copy()
        entry = int(find_entry(table, data, 0, len(data)))
        return int(bits[entry]) if entry >= 0 else 0

    def labels(host: str) -> int:
        data = np.frombuffer(host.encode(), np.uint8).copy()
        starts = np.empty(20, np.int64)
        count = label_starts(data, 0, len(data), starts)
        return int(public_labels(data, starts, count, len(data), (table, bits)))

    rules = [rule(name) for name in ("com", "ck", "www.ck", "рф", "github.io")]
    assert rules == [EXACT, WILD, EXCEPTION, EXACT, 0]
    hosts = ("a.com", "a.co.uk", "a.uk", "a.b.ck", "ck", "www.ck", "a.www.ck", "a.xx")
    assert [labels(host) for host in hosts] == [1, 2, 1, 2, 1, 1, 1, 0]
