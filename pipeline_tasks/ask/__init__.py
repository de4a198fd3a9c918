"""What can be asked of Refinery: a table of questions, filled by extensions and by packages of others.

It imports what is below every room that answers.
"""
