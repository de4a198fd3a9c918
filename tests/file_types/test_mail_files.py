from email.message import EmailMessage

import pytest
from refinery_files.mail import holds, read

from pipeline_tasks.text.page.file_text import FileRefused
from tests.file_types.office_parts import text_of

PLAIN = "Hello Bob,\n\nthis is\na text.\n\n> quoted\n> lines\n\n-- \nAnn\n"
HEAD = "From: a@b.c\nDate: Tue, 05 Mar 2024 10:00:00 +0100\nSubject: Hi\n"


def message(plain: str, html: str = "") -> EmailMessage:
    mail = EmailMessage()
    mail["From"], mail["Subject"], mail["Date"] = "a@b.c", "Gr\u00fc\u00dfe", "Tue, 05 Mar 2024 10:00:00 +0100"
    mail.set_content(plain)
    if html:
        mail.add_alternative(html, subtype="html")
    return mail


def test_a_message_is_its_subject_and_its_lines_with_what_it_quotes() -> None:
    text = read(bytes(message(PLAIN, "<p>Hello Bob, this is a text.</p>")))
    assert text_of(text) == "Gr\u00fc\u00dfe\n\nHello Bob,\n\nthis is\na text.\n\n> quoted\n> lines\n\n--\nAnn"
    assert (text.title, text.published) == ("Gr\u00fc\u00dfe", "2024-03-05")


def test_html_is_taken_where_the_plain_part_is_a_stub() -> None:
    html = f"<html><head><style>x</style></head><body><div style='display:none'>preview</div><p>{'Many words. ' * 10}</p></body></html>"
    text = text_of(read(bytes(message("Use a reader of HTML.", html))))
    assert text == f"Gr\u00fc\u00dfe\n\n{('Many words. ' * 10).strip()}"


def test_attachments_are_not_read() -> None:
    mail = message("text")
    mail.add_attachment("not this", filename="a.txt")
    mail.add_attachment(message("nor this"))
    assert text_of(read(bytes(mail))) == "Gr\u00fc\u00dfe\n\ntext"


def test_lines_that_flow_are_joined() -> None:
    flowed = f"{HEAD}Content-Type: text/plain; format=flowed\n\nA long \nline.\n> quoted \n> too\nend\n"
    assert text_of(read(flowed.encode())) == "Hi\n\nA long line.\n> quoted too\nend"


def test_lines_that_are_indented_keep_their_blanks() -> None:
    assert text_of(read(f"{HEAD}\nSee:\n\n  if x:\n      y\n".encode())) == "Hi\n\nSee:\n\nif x:\n    y"


def test_a_patch_keeps_its_blanks() -> None:
    patch = "@@ -1,3 +1,3 @@\n int main() {\n-\treturn 1;\n+\treturn 0;\n }"
    assert text_of(read(f"{HEAD}\n{patch}\n".encode())) == f"Hi\n\n{patch}"


def test_addresses_do_not_make_a_stub_a_text() -> None:
    stub = "See https://example.org/a-long-address-that-is-no-text/of-a-mail/0123456789"
    assert text_of(read(bytes(message(stub, "<p>Twenty letters of text</p>")))).endswith("of text")


@pytest.mark.parametrize("charset", ["iso-8859-1", "unknown-8bit", "no-such", ""])
def test_a_charset_that_is_wrong_is_guessed(charset: str) -> None:
    head = f"{HEAD}Content-Type: text/plain; charset={charset}\n\n" if charset else f"{HEAD}\n"
    assert text_of(read(head.encode() + b"caf\xe9")) == "Hi\n\ncaf\u00e9"


def test_each_message_of_a_box_is_a_part() -> None:
    begin = b"From a@b.c Tue Mar  5 10:00:00 2024\n"
    text = read(
        begin
        + bytes(message("one\n"))
        + b"\n"
        + begin
        + b"Date: 6 Mar 2024 00:00 +0000\nFrom: x\nSubject: two\n\n>From here\n"
    )
    assert text_of(text) == "Gr\u00fc\u00dfe\n\none\n-----\ntwo\n\nFrom here"
    assert text.published == "2024-03-06"


@pytest.mark.parametrize(
    "body",
    [
        f"{HEAD}Content-Type: multipart/encrypted; boundary=x\n\n--x\n\nVersion: 1\n--x--\n",
        f"{HEAD}Content-Type: application/pkcs7-mime; smime-type=enveloped-data\n\nMIIB\n",
        f"{HEAD}\n-----BEGIN PGP MESSAGE-----\n\nhQEM\n-----END PGP MESSAGE-----\n",
    ],
)
def test_what_is_encrypted_is_refused(body: str) -> None:
    with pytest.raises(FileRefused, match="encrypted"):
        read(body.encode())


def test_a_message_whose_end_is_missing_is_cut() -> None:
    body = bytes(message("text", "<p>text</p>"))
    assert read(body[: body.rindex(b"<p>")]).is_cut


@pytest.mark.parametrize(
    ("body", "is_mail"),
    [
        (HEAD + "\nx", True),
        ("From a@b.c Tue Mar  5 10:00:00 2024\n" + HEAD + "\nx", True),
        ("Return-Path: <a@b>\nReceived: by x\n\twith y\nSubject: z\n\n", True),
        ("Subject: a title\n\ntext", False),
        ("From: here to there\n\ntext", False),
        ("Note: this is a text\nof two lines", False),
        ("HTTP/1.1 200 OK\nDate: x\n\n", False),
        ("From: a\nDate: b\nand no head", False),
        ("From the beginning: 2024\nwords", False),
    ],
)
def test_mail_is_known_by_its_head(body: str, is_mail: bool) -> None:
    assert holds(body.encode()) is is_mail
