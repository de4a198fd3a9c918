"""Names of columns that a layer alone has (see `rows`)."""

ROW = "__row"
"""Column of a layer: the row of the shard below, counted from 0; it ascends."""

CHANGED = "__changed_"
"""Prefix of the columns of a layer that have a value for some rows only, in a struct of one field, `VALUE`."""

VALUE = "value"
