"""Commands of `refinery` that start work or change something: one module for each."""
