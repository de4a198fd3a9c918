"""The `refinery` command: `main` lists the commands; each command's module owns its arguments and its output.

Imports everything.
"""
