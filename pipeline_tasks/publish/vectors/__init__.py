"""Vectors of published documents: what the log says there are, the tables of Lance that follow it, and the nearest.

Imports the vocabulary, `store` and the rest of `publish`. `table` alone knows Lance, which is installed by the extra
`vectors`.
"""

FOLDER = "vectors"
"""Where the tables of a root are unless another place is named: below it, in a folder per recipe."""
