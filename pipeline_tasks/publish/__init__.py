"""Published output: the log of versions, exported files, the report and the ledger.

Imports the vocabulary, `profiles`, `store` and `gate`.
"""
