"""What keeps a root in order: remove orphans, merge history, check the machine.

Imports the rooms below it, `inspect` among them; never `service`, `demo` or `cli`.
"""
