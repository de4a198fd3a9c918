"""Edits that remove parts of texts: the line rules of C4, DCLM and cc_net, URLs, repeated paragraphs; their spans.

Imports `text.base` and `text.words`.
"""
