"""One part for every seam of Refinery, from outside of it."""
