"""How letters make words where boxes do not say it: clusters, words that run to the left, words that are set apart."""
