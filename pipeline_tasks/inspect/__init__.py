"""Answers to questions about what is published; each module owns its arguments and its answer.

Imports everything but `upkeep`, `service`, `cli` and `demo`.
"""
