"""One stage over one input: the runner, its tasks and receipts, the shuffle, and the history that it sees.

Imports the vocabulary, `profiles`, `store` and `landing`.
"""
