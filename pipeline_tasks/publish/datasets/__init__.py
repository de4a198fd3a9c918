"""Training datasets: what they are composed of, their tokenizer, their files, and their tokens as text."""
