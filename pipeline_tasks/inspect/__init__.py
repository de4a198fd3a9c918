"""Answers to questions about published snapshots: a module or room for each command, and what they share (`command`).

Imports the rooms below `upkeep`, never a service.
"""
