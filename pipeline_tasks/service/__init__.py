"""Requests, and the worker daemon that answers them.

Imports everything but `flow`, `demo`, `cli` and `api`.
"""
