import pytest
from refinery_files.feed import holds, read

from pipeline_tasks.text.page.file_text import FileRefused
from tests.file_types.office_parts import text_of

RSS = """<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:media="http://search.yahoo.com/mrss/"><channel>
<title>A &amp; B</title><language>en-us</language>
<item><title>First &amp;amp; best</title><pubDate>Tue, 05 Mar 2024 10:00:00 +0000</pubDate><description>short</description>
<media:title>no</media:title><content:encoded><![CDATA[<p>Full <em>text</em></p><script>no</script>]]></content:encoded></item>
<item><pubDate>Wed, 06 Mar 2024 10:00:00 GMT</pubDate><description>&lt;p&gt;Escaped&amp;nbsp;text&lt;/p&gt;</description></item>
<item><title>Plain</title><description>3 &lt; 4</description></item>
</channel></rss>"""

ATOM = """<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="de"><title>F</title><updated>2023-01-02T00:00:00Z</updated>
<entry><title type="html">A &lt;b&gt;b&lt;/b&gt;</title><updated>2022-01-02T00:00:00Z</updated>
<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>X <i>y</i></p></div></content><summary>no</summary></entry>
<entry><title>C</title><summary type="text">a &lt;b&gt; c</summary></entry></feed>"""

RDF = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/">
<channel><title>R</title><dc:language>ja</dc:language></channel>
<item><title>I</title><description>d</description><dc:date>2005-01-02T03:04:05Z</dc:date></item></rdf:RDF>"""


def test_entries_of_rss_are_headings_with_their_whole_content() -> None:
    text = read(RSS.encode())
    assert text_of(text) == "First & best\n\nFull text\n\nEscaped text\n\nPlain\n\n3 < 4"
    assert (text.title, text.language, text.published) == ("A & B", "en-us", "2024-03-06")


def test_entries_of_atom_have_markup_or_text_as_they_say() -> None:
    text = read(ATOM.encode())
    assert text_of(text) == "A b\n\nX y\n\nC\n\na <b> c"
    assert (text.title, text.language, text.published) == ("F", "de", "2022-01-02")


def test_entries_of_rdf_are_beside_their_channel() -> None:
    text = read(RDF.encode())
    assert text_of(text) == "I\n\nd"
    assert (text.title, text.language, text.published) == ("R", "ja", "2005-01-02")


def test_what_is_added_is_read_where_the_feed_says_nothing() -> None:
    body = '<feed xmlns="http://www.w3.org/2005/Atom" xmlns:media="m"><entry><title>V</title><media:group><media:description>said</media:description></media:group></entry></feed>'
    assert text_of(read(body.encode())) == "V\n\nsaid"


def test_rdf_of_another_vocabulary_is_no_feed() -> None:
    assert holds(RDF.encode())
    assert holds(RSS.encode())
    assert not holds(b'<rdf:RDF xmlns:rdf="r" xmlns:foaf="http://xmlns.com/foaf/0.1/"><foaf:Person/></rdf:RDF>')


def test_names_of_characters_are_read_without_a_dtd() -> None:
    body = '<!DOCTYPE rss PUBLIC "-//Netscape//DTD RSS 0.91//EN" "http://127.0.0.1:1/rss.dtd"><rss><channel><item><title>caf&eacute;</title></item></channel></rss>'
    assert text_of(read(body.encode())) == "caf\u00e9"


def test_a_feed_that_is_cut_is_read_as_far_as_it_goes() -> None:
    text = read(RSS[: RSS.index("<item><title>Plain")].encode())
    assert text.is_cut
    assert text_of(text).endswith("Escaped text")


def test_a_feed_with_a_bare_sign_is_read_to_its_end() -> None:
    text = read(b"<rss><channel><item><title>A & B</title></item><item><title>C</title></item></channel></rss>")
    assert text_of(text).endswith("C")
    assert not text.is_cut


@pytest.mark.parametrize("body", [b"<html><body>x</body></html>", b"", b"<rss", b"<rss>" * 10_000])
def test_what_is_no_feed_is_damaged(body: bytes) -> None:
    with pytest.raises(FileRefused, match="damaged"):
        read(body)
