"""A part for each seam of Refinery of which `refinery new` writes none, from outside of it."""
