"""The bytes of a page to its text: charset, main text, metadata, sandbox, mojibake, normal form, identity.

Imports `text.base`.
"""
