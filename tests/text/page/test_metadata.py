"""What a page declares: its title, language and day of publication, or nothing where it is not sure."""

import pyarrow as pa
import pytest

from pipeline_tasks.text.page.main_text import main_text
from pipeline_tasks.text.page.metadata import PageMetadata, day, language_tag
from pipeline_tasks.text.page.tags import survey


def metadata(html: str) -> PageMetadata:
    surveyed = survey(pa.array([html.encode()], pa.large_binary()), 250, 2000)
    return main_text(html, "resiliparse", bits=int(surveyed.bits[0])).metadata


LINKED = '<script type="application/ld+json">{}</script>'


@pytest.mark.parametrize(
    ("html", "published"),
    [
        ('<meta property="article:published_time" content="2021-03-04T23:59:00+02:00">', "2021-03-04"),
        ("<meta itemprop=datePublished content=2021-03-04>", "2021-03-04"),
        (LINKED.format('{"@type": "Article", "datePublished": "2020-02-29T10:00Z"}'), "2020-02-29"),
        (LINKED.format('[{"@graph": [{"datePublished": "2020-02-28"}]}]'), "2020-02-28"),
        (LINKED.format('{"review": {"datePublished": "2020-02-28"}, "x": 1}'), None),
        (LINKED.format('{"datePublished": "2020-02-28"'), None),
        (LINKED.format('{"a": 1}') + '<script>x = {"datePublished": "2020-02-28"}</script>', None),
        ('<span itemprop="datePublished">2019-07-01</span>', "2019-07-01"),
        ('<time class="entry-date published" datetime="2018-01-02T03:04:05">then</time>', "2018-01-02"),
        ("<time pubdate datetime='2018-01-02'>then</time>", "2018-01-02"),
        ("<time datetime='2018-01-02'>then</time>", None),
        ("<time class=unpublished datetime='2018-01-02'>then</time>", None),
        ("<time pubdate datetime='2018-01-02'>a</time><time pubdate datetime='2018-01-03'>b</time>", None),
        (
            '<meta property="article:published_time" content="yesterday"><time pubdate datetime=2018-01-02>then</time>',
            None,
        ),
        (
            '<meta property="article:published_time" content="2021-03-04">'
            + LINKED.format('{"datePublished": "2020-02-28"}'),
            "2021-03-04",
        ),
        ("", None),
    ],
)
def test_the_day_of_publication(html: str, published: str | None) -> None:
    assert metadata(f"<html><head>{html}</head><body><p>Text.</p></body></html>").published == published


@pytest.mark.parametrize(
    ("html", "language"),
    [
        ("<html lang=de-AT>", "de-at"),
        ("<html xml:lang=pt_BR>", "pt-br"),
        ("<html lang=''><meta http-equiv=Content-Language content='fr, en'>", "fr"),
        ("<html lang=en><meta http-equiv=content-language content=fr>", "en"),
        ("<html lang='<b>'>", None),
        ("<p lang=de>x", None),
        ("<!doctype html><?xml version='1.0'?><!-- <html lang=en> --><html id='lang=fr' lang = 'de' class>", "de"),
        ("<!--[if IE]><html lang=en><![endif]--><!--[if !IE]><!--><html LANG=de><!--<![endif]-->", "de"),
        ("<html data-lang=en lang='d&#101;'>", "de"),
        ("<html lang=de lang=en>", "de"),
        ("<html lang='' xml:lang=de>", "de"),
        ("<html><body><html lang=de>", "de"),
        ("<html title='> lang=en' lang=de>", "de"),
        ("<html lang=de/>", None),
        ("<html/lang=de>", "de"),
        ("<!--><html lang=de>-->", "de"),
        ("<html lang=en", None),
        ("", None),
    ],
)
def test_the_language(html: str, language: str | None) -> None:
    assert metadata(html).language == language


def test_the_title() -> None:
    assert metadata("<title> A \n&amp;  B</title>").title == "A & B"
    assert metadata("<p>none").title is None


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2020-02-30", None),
        ("1989-12-31", None),
        ("2020-02-03T", "2020-02-03"),
        ("2020-02-03x", None),
        (" 2020-02-03 10:00", "2020-02-03"),
        (None, None),
    ],
)
def test_a_day_is_a_real_one(text: str | None, wanted: str | None) -> None:
    assert day(text) == wanted


def test_a_tag_is_no_longer_than_any_needs() -> None:
    assert language_tag("zh-hant-tw") == "zh-hant-tw"
    assert language_tag("en-" + "abcdefgh-" * 5 + "x1") is None
