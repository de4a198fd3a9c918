"""Where snapshots come from: kinds of sources, downloads that continue, the budget of requests, and what proves a pull.

Imports the vocabulary, `store` and `landing`; `commands` and `testing` also what commands and suites of the core do.
"""
