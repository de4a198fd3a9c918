"""Where snapshots come from: kinds of sources, downloads that continue, the budget of requests, and what proves a pull.

Imports the vocabulary, `store` and `landing`.
"""
