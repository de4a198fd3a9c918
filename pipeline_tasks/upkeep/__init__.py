"""What keeps a root in order: retract a snapshot, remove orphans, merge history, check the machine.

Imports everything but `inspect`, `service`, `cli` and `demo`.
"""
