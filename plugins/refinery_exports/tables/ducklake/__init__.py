"""The catalog `ducklake`: tables of SQL that say which files a table has, in SQLite or PostgreSQL.

They are written by plain SQL, in one transaction for each commit, as the specification of DuckLake 1.0 says
(https://ducklake.select/docs/stable/specification); no DuckDB is needed. A lake that DuckDB made is extended as it is.
"""

from refinery_exports.tables.ducklake.database import Database
from refinery_exports.tables.ducklake.lake import Lake


def opens(address: str) -> Lake:
    """Open the lake of an address: `sqlite:/path/lake.sqlite`, or `postgres:dbname=... host=...` in words of libpq.

    RecipeError for another kind. Nothing is made before the first commit.
    """
    return Lake(Database.of(address))
