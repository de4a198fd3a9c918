"""Personal data in texts: where e-mail addresses, phone numbers and IP addresses are.

Imports `text.base`.
"""
