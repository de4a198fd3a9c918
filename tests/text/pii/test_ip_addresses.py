"""IP addresses: which count, and what only looks like one."""

import pytest

from pipeline_tasks.text.pii.candidates import Limits
from pipeline_tasks.text.pii.ip_addresses import find_ipv4s, find_ipv6s


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("from 69.196.0.85:80", ["69.196.0.85"]),
        ("192.168.1.20 and 127.0.0.1", []),
        ("300.1.1.1 and 1.2.3.4.5", []),
        ("version 69.196.0.85", []),
        ("v69.196.0.85", []),
        ("Mozilla/69.196.0.85", []),
        ("8.8.8.8", []),
    ],
)
def test_ipv4(text: str, values: list[str]) -> None:
    assert [span.value for span in find_ipv4s(text.encode(), Limits())] == values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("[2400:C401::5054:ff:fe1b:b031]", ["2400:c401::5054:ff:fe1b:b031"]),
        ("::1 fe80::1 2001:db8::1", []),
        ("12:30:45 aa:bb:cc:dd:ee:ff std::vector", []),
    ],
)
def test_ipv6(text: str, values: list[str]) -> None:
    assert [span.value for span in find_ipv6s(text.encode(), Limits())] == values


def test_private_addresses_count_if_limits_say_so() -> None:
    limits = Limits(public_ips=False)
    assert [span.value for span in find_ipv4s(b"192.168.1.20, 1.2.3.4", limits)] == ["192.168.1.20", "1.2.3.4"]
    assert [span.value for span in find_ipv6s(b"at fe80::1 now", limits)] == ["fe80::1"]


def test_pseudonyms_are_kept() -> None:
    limits = Limits(public_ips=False, keep_pseudonyms=True)
    assert not list(find_ipv4s(b"198.18.3.4 198.19.0.1", limits))
    assert not list(find_ipv6s(b"2001:db8::42", limits))
