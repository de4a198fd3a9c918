"""What takes parts out of texts: the line rules of C4, DCLM and cc_net, URLs, repeated paragraphs, and the spans.

Imports `text.base` and `text.words`.
"""
