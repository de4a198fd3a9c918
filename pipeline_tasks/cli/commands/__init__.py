"""Commands of `refinery` that do more than ask: one module for each."""
