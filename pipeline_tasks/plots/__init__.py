"""Plots of snapshots: Vega-Lite specs made in Python, each with its numbers as a table. Nothing is drawn here.

Imports the vocabulary.
"""
