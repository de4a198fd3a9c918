"""Requests with the types of their replies, by subject, and how they travel."""
