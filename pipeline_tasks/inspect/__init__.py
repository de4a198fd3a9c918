"""Answers to questions about published snapshots: one module per command, and what commands share (`command`).

Imports the rooms below `upkeep`, never a service.
"""
