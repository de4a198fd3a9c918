"""The commands `refinery ablate` and `refinery mixture`; they import the extension and the core."""
