"""What judges a manifest: facts, and the verdicts of suites of expectations on them.

Imports the vocabulary, `profiles` and `store`.
"""
