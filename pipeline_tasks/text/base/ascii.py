"""Name ASCII bytes, and test single bytes inside compiled loops."""

from pipeline_tasks.text.base.compiled import inlined

NUL, TAB, NEWLINE, VERTICAL_TAB, FORM_FEED, RETURN = (ord(sign) for sign in "\0\t\n\v\f\r")
SPACE, DELETE = 0x20, 0x7F
EXCLAMATION_MARK, QUOTE, HASH, DOLLAR, PERCENT, AMPERSAND, APOSTROPHE = (ord(sign) for sign in "!\"#$%&'")
OPENING_PARENTHESIS, CLOSING_PARENTHESIS, STAR, PLUS, COMMA, HYPHEN, DOT, SLASH = (ord(sign) for sign in "()*+,-./")
ZERO, TWO, NINE, COLON, SEMICOLON, LESS, EQUAL, GREATER, QUESTION_MARK, AT_SIGN = (ord(sign) for sign in "029:;<=>?@")
UPPER_A, UPPER_C, UPPER_S, UPPER_U, UPPER_Z = (ord(letter) for letter in "ACSUZ")
OPENING_BRACKET, BACKSLASH, CLOSING_BRACKET, CARET, UNDERSCORE, BACKTICK = (ord(sign) for sign in "[\\]^_`")
LOWER_A, LOWER_F, LOWER_H, LOWER_S, LOWER_Z = (ord(letter) for letter in "afhsz")
OPENING_BRACE, BAR, CLOSING_BRACE, TILDE = (ord(sign) for sign in "{|}~")
CASE_BIT = 0x20
"""The bit by which a lower-case letter differs from its upper-case one."""


@inlined
def is_digit(byte):
    """Return whether a byte is an ASCII digit."""
    return ZERO <= byte <= NINE


@inlined
def is_letter(byte):
    """Return whether a byte is an ASCII letter."""
    return LOWER_A <= (byte | CASE_BIT) <= LOWER_Z


@inlined
def is_alphanumeric(byte):
    """Return whether a byte is an ASCII letter or digit."""
    return is_digit(byte) or is_letter(byte)


@inlined
def lower(byte):
    """Return an ASCII letter in lower case, any other byte as it is."""
    return byte | CASE_BIT if UPPER_A <= byte <= UPPER_Z else byte


@inlined
def starts_character(byte):
    """Return whether a byte is the first of a character in UTF-8."""
    return (byte & 0xC0) != 0x80
