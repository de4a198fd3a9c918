"""Draws a version's documents as points: near ones are near by their vectors. Imports the core alone."""
