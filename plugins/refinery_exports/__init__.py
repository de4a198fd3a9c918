"""Training datasets in the formats of other trainers."""
