"""Gates: facts of a manifest, and the verdicts of suites of expectations on them.

Imports the vocabulary, `profiles` and `store`.
"""
