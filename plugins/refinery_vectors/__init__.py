"""Stores of vectors of published documents: tables that follow the log, and what is nearest. Imports the core alone.

`table` alone knows Lance, which is installed by the extra `vectors`.
"""

FOLDER = "vectors"
"""Where the tables of a root are unless another place is named: below it, in a folder per recipe."""
