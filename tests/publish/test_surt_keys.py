"""Keys of addresses are those of Common Crawl's indexes: of real rows of them, and of what their writer is tested by."""

import pyarrow as pa
import pytest
from refinery_exports.annotations.surt import surt_key, surt_keys

INDEXED = {
    # Rows of the indexes of CC-MAIN-2023-14, 2023-40, 2024-30, 2025-21 and 2026-30, as Common Crawl serves them.
    "https://commoncrawl.org/faq": "org,commoncrawl)/faq",
    "https://mistral.ai/": "ai,mistral)/",
    "https://an.wikipedia.org/wiki/Escopete": "org,wikipedia,an)/wiki/escopete",
    "https://whwheelers.org/robots.txt": "org,whwheelers)/robots.txt",
    "http://165.22.100.0/": "0,100,22,165)/",
    "http://165.22.100.0/robots.txt": "0,100,22,165)/robots.txt",
    "https://139.59.100.0/": "0,100,59,139)/",
    "https://fusionbikes.com.ar/producto/luz-knog-blinder-mini-niner/": (
        "ar,com,fusionbikes)/producto/luz-knog-blinder-mini-niner"
    ),
    "http://futbolinterior.com.ar/component/mailto/?tmpl=component&template=shaper_helix3"
    "&link=b2449dac9dd9dbc27fe2d9f8c9dfc250a10eb664": (
        "ar,com,futbolinterior)/component/mailto?link=b2449dac9dd9dbc27fe2d9f8c9dfc250a10eb664"
        "&template=shaper_helix3&tmpl=component"
    ),
    "http://www.tutorialspoint.com/accounting_basics/accounting_basics_tutorial.pdf": (
        "com,tutorialspoint)/accounting_basics/accounting_basics_tutorial.pdf"
    ),
    "https://www.tutorialspoint.com/adding_and_subtracting_decimals/pdf/addition_with_money_worksheet8_1.pdf": (
        "com,tutorialspoint)/adding_and_subtracting_decimals/pdf/addition_with_money_worksheet8_1.pdf"
    ),
    # Addresses of the crawler's own issues, by which the writer of its keys is tested (WaybackURLKeyMakerTest).
    "https://34.203.211.192/robots.txt": "192,211,203,34)/robots.txt",
    "https://[2600:1f18:200d:fb00:2b74:867c:ab0c:150a]/robots.txt": (
        "2600:1f18:200d:fb00:2b74:867c:ab0c:150a)/robots.txt"
    ),
    "http://1kr.ua/newslist.html?tag=%E4%EE%F8%EA%EE%EB%FC%ED%EE%E5": (
        "ua,1kr)/newslist.html?tag=%e4%ee%f8%ea%ee%eb%fc%ed%ee%e5"
    ),
    "http://www.aluroba.com/tags/%C3%CE%CA%C7%D1%E5%C7.htm": "com,aluroba)/tags/%c3%ce%ca%c7%d1%e5%c7.htm",
    "https://www.insbase.ac/xoops2/modules/xpwiki/?%A4%D5%A4%AF%A4%AA%A4%AB%B8%A9": (
        "ac,insbase)/xoops2/modules/xpwiki?%a4%d5%a4%af%a4%aa%a4%ab%b8%a9"
    ),
    "http://archive.org": "org,archive)/",
    "http://archive.org/goo/": "org,archive)/goo",
    "http://archive.org/goo/?": "org,archive)/goo",
    "http://archive.org/goo/?b&a": "org,archive)/goo?a&b",
    "http://archive.org/goo/?a=2&b&a=1": "org,archive)/goo?a=1&a=2&b",
    "http://archive.org:/": "org,archive)/",
    "dns:archive.org": "org,archive)",
    "filedesc://foo.arc.gz": "filedesc://foo.arc.gz",
    "warcinfo:foo.warc.gz": "warcinfo:foo.warc.gz",
}

SPELLED = {
    "https://user:word@www.Example.org:443/A//b/./c/../D?#part": "org,example)/a/b/d",
    "https://www2.example.org:8443/": "org,example:8443)/",
    "http:////////www.vikings.com": "com,vikings)/",
    "www.google.com...": "com,google)/",
    "http://www.www3.google.com/": "com,google)/",
    "http://www.google.com/foo\tbar\rbaz\n2": "com,google)/foobarbaz2",
    "http://host/%25%32%35": "host)/%25",
    "http://host/%%%25%32%35asd%%": "host)/%25%25%25asd%25%25",
    "http://host.com/ab%23cd": "com,host)/ab%23cd",
    "http://host.com/%C3%BCber ALLES": "com,host)/%c3%bcber%20alles",
    "http://bücher.ch:8080?#foo": "ch,xn--bcher-kva:8080)/",
    "http://3279880203/blah": "11,0,127,195)/blah",
    "http://017.0.0.1/": "1,0,0,15)/",
    "http://1.2.3.256/": "256,3,2,1)/",
    "http://host/?a=1&": "host)/?&a=1",
    "http://host/x?PHPSESSID=0123456789abcdef0123456789ABCDEF&b=2": "host)/x?b=2",
    "http://host/x?a=1&sid=0123456789abcdef0123456789abcdef": "host)/x?&a=1",
    "http://host/(S(4hqa0555fwsecu455xqckv45))/mileg.aspx": "host)/mileg.aspx",
    "http://host/photos/36050182@N05/": "host)/photos/36050182@n05",
}


@pytest.mark.parametrize("url", [*INDEXED, *SPELLED])
def test_a_key_is_the_one_of_the_index(url: str) -> None:
    assert surt_key(url) == (INDEXED | SPELLED)[url]


def test_a_long_address_costs_no_more_than_its_length() -> None:
    most = 1 << 20
    assert surt_key(f"http://host/%{'25' * most}41") == "host)/a"
    assert surt_key(f"http://{'www.' * most}host/{'(a' * most}") == f"host)/{'(a' * most}"
    assert surt_key(f"http://host/{'../a/' * most}?{'sid=' * most}") == f"host)/../a?{'sid=' * most}"


def test_what_is_no_address_has_no_key() -> None:
    urls = pa.array([None, "", "http://host:port/", "http://[::1/", "https://a.example/"], pa.string())
    assert surt_keys(urls).to_pylist() == [None, None, None, None, "example,a)/"]
