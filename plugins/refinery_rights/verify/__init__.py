"""What `refinery verify` asks of people and rights: erased documents, signed statements. Imports `statements`."""
