"""Pages as blocks: their markup read once, what surrounds each block as numbers, and the blocks that are main text.

Imports `text.base` and `text.words`.
"""
