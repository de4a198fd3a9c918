"""IP addresses: which count, and what only looks like one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.pii.candidates import Limits
from pipeline_tasks.text.pii.ip_addresses import find_ipv4s, find_ipv6s
from tests.text.pii.plain import ipv4s


def values_of(text: str) -> list[str]:
    return [span.value for span in find_ipv4s(text.encode(), Limits())]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("from 69.196.0.85:80", ["69.196.0.85"]),
        ("192.168.1.20 and 127.0.0.1, 10.1.2.3, 172.16.0.9, 169.254.1.1, 100.64.0.1", []),
        ("300.1.1.1 and 1.2.3.4.5", []),
        ("version 69.196.0.85", []),
        ("v69.196.0.85", []),
        ("Mozilla/69.196.0.85", []),
        ("8.8.8.8", []),
    ],
)
def test_ipv4(text: str, values: list[str]) -> None:
    assert values_of(text) == values


@pytest.mark.parametrize(
    "text",
    [
        "a69.196.0.85", "_69.196.0.85", "769.196.0.85", "7.69.196.0.85", "69.196.0.85x", "69.196.0.85_", "69.196.0.85.7",
        "69.196.0.851", "<IP>.69.196.0.85", "69.196.0.85<PHONE>", "<EMAIL>69.196.0.85", "69.196.0.85.<IP>",
    ],
)  # fmt: skip
def test_part_of_a_word_or_number_is_no_address(text: str) -> None:
    assert not values_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "69.196.0.85", "69.196.0.85.", "69.196.0.85.Next", "(69.196.0.85)", "地址69.196.0.85在", "69.196.0.85/24", "=69.196.0.85;",
        "no.69.196.0.85", "...69.196.0.85", "-69.196.0.85", "é69.196.0.85",
    ],
)  # fmt: skip
def test_marks_around_an_address(text: str) -> None:
    assert values_of(text) == ["69.196.0.85"]


@pytest.mark.parametrize(
    "text",
    [
        "IP 1.2.3.4",
        "ip: 1.2.3.4",
        "my IP address is 1.2.3.4",
        "ping 1.2.3.4",
        "inet addr:1.2.3.4",
        "DNS = 1.2.3.4",
        "host (1.2.3.4)",
    ],
)
def test_small_octets_count_where_they_are_announced(text: str) -> None:
    assert values_of(text) == ["1.2.3.4"]


@pytest.mark.parametrize(
    "text",
    [
        "1.2.3.4",
        "section 1.2.3.4",
        "SQL Server 11.0.2.1",
        "update from 1.0.0.2 to 1.0.0.4",
        "see 2.1.1.3.",
        "IPs of version 1.2.3.4",
    ],
)
def test_small_octets_are_versions_and_sections_elsewhere(text: str) -> None:
    assert not values_of(text)


@pytest.mark.parametrize(
    "text",
    [
        '"version": "47.96.22.31"', "Versions: 47.96.22.31, 47.96.22.32 and 47.96.22.33", "Foo >= 47.96.22.31",
        "foo==47.96.22.31", "foo_47.96.22.31_amd64.deb", "<version>47.96.22.31</version>", '"foo": "^47.96.22.31"',
        "gem 'foo', '~> 47.96.22.31'", "kernel 5.15.49.92", 'AssemblyVersion("47.96.22.31")', "version_number = 47.96.22.31",
        "driver 27.21.14.56", "upgraded from 47.96.22.31 to 47.96.22.40", "fixed in 47.96.22.31", "libfoo.so.1.2.34.5",
        "47.96.22.31-beta", "47.96.22.31.tar.gz", "oid: 1.3.26.100", "EC 3.4.21.62", "(EC:3.4.21.62)", "EC number 3.4.21.62",
        "§ 4.21.33.2", "sections 4.21.33.2 and 4.21.33.3", "Table 4.21.33.2", "clause 8.21.33.2",
    ],
)  # fmt: skip
def test_versions_sections_enzymes_and_object_identifiers_are_no_addresses(text: str) -> None:
    assert not values_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "if ip==69.196.0.85:", 'if (addr == "69.196.0.85")', "HostIp>=69.196.0.85", "at 69.196.0.85, build 3", "69.196.0.85:80",
        "version 2 of 69.196.0.85", "released by 69.196.0.85", "69.196.0.85-69.196.0.85", "user@69.196.0.85",
    ],
)  # fmt: skip
def test_addresses_that_look_a_little_like_versions(text: str) -> None:
    assert "69.196.0.85" in values_of(text)


def test_a_list_of_small_octets() -> None:
    assert values_of("IP 1.2.3.4, 1.2.3.5 and 1.2.3.6; chapter 1.2.3.7") == ["1.2.3.4", "1.2.3.5", "1.2.3.6"]
    assert values_of("IP <IP>, 1.2.3.5") == ["1.2.3.5"]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("[2400:C401::5054:ff:fe1b:b031]", ["2400:c401::5054:ff:fe1b:b031"]),
        ("::1 fe80::1 2001:db8::1", []),
        ("12:30:45 aa:bb:cc:dd:ee:ff std::vector", []),
        ("x2400:c401::1 2400:c401::1g", []),
    ],
)
def test_ipv6(text: str, values: list[str]) -> None:
    assert [span.value for span in find_ipv6s(text.encode(), Limits())] == values


def test_private_addresses_count_if_limits_say_so() -> None:
    limits = Limits(public_ips=False)
    assert [span.value for span in find_ipv4s(b"192.168.1.20, 1.2.3.4", limits)] == ["192.168.1.20", "1.2.3.4"]
    assert [span.value for span in find_ipv6s(b"at fe80::1 now", limits)] == ["fe80::1"]


@given(
    st.lists(
        st.lists(st.integers(0, 300), min_size=2, max_size=6).map(lambda numbers: ".".join(map(str, numbers))),
        max_size=6,
    )
)
def test_agrees_with_a_plain_reference(words: list[str]) -> None:
    text = " ".join(words)
    assert values_of(text) == ipv4s(text)
