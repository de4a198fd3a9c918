"""Where kernels run: `local` is the reference, and those that extensions and other packages bring give the same rows.

Imports the vocabulary, `run` and `text.base`; asks the table of `card` who brings an engine.
"""
