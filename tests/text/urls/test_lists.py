"""Lists of many entries are exact, and take little memory."""

import tracemalloc
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.urls import lists

MANY = 200_000


def find(table: lists.Table, item: bytes) -> int:
    return int(lists.find_entry(table, np.frombuffer(item, np.uint8).copy(), 0, len(item)))


@given(st.lists(st.binary(max_size=6), max_size=40), st.lists(st.binary(max_size=6), max_size=20))
def test_finds_what_is_listed_and_nothing_else(items: list[bytes], others: list[bytes]) -> None:
    table = lists.short_table(items)
    asked = [*items, *others]
    assert [find(table, item) for item in asked] == [items.index(item) if item in items else -1 for item in asked]


def test_many_entries_take_their_bytes_and_twenty_more(tmp_path: Path) -> None:
    hosts = [f"host-{number:07d}.example.com" for number in range(MANY)]
    path = tmp_path / "hosts.txt"
    path.write_text("".join(f"{host}\n" for host in hosts))
    lists.read_list(str(path), lists.HOST)  # compiles
    tracemalloc.start()
    table, odd = lists.read_list(str(path), lists.HOST)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    letters = sum(map(len, hosts))
    assert not odd
    assert lists.table_bytes(table) <= letters + 20 * MANY
    assert held <= lists.table_bytes(table) + 100_000
    assert peak <= held + path.stat().st_size
    assert [find(table, host.encode()) for host in hosts[::997]] == list(range(0, MANY, 997))
    assert {find(table, f"{host}m".encode()) for host in hosts[::997]} == {-1}


def test_forms(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    entries = {}
    for form in (lists.SPELLED, lists.WORD, lists.HOST, lists.URL):
        end = "" if form == lists.HOST else "C/#d"
        path.write_bytes(f"# no\r\n .WWW.Ex-ample.Com. \n\nftp://WWW.A.b/{end}\nbücher.de\nf\xf6\xf6".encode())
        table, odd = lists.read_list(str(path), form)
        entries[form] = [lists.entry_text(table, number) for number in range(len(table[1]) - 1)]
        assert odd == (["bücher.de", "föö"] if form == lists.HOST else [])
    assert entries == {
        lists.SPELLED: [".WWW.Ex-ample.Com.", "ftp://WWW.A.b/C/#d", "bücher.de", "föö"],
        lists.WORD: ["wwwexamplecom", "ftpwwwabcd", "bcherde", "f"],
        lists.HOST: ["www.ex-ample.com", "www.a.b"],
        lists.URL: [".www.ex-ample.com.", "a.b/C", "bücher.de", "föö"],
    }
