"""The commands `refinery ablate` and `refinery model mixture`; they import the extension and the core."""
