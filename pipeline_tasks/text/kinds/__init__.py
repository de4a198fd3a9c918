"""What a text is: its structure, the cues of its type and licence, how hard it reads, how many tokens it has.

Rules are data (`*.json`), and loops count. Imports `text.base`.
"""
