"""One pure judgement per file."""
