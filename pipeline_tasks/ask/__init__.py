"""What can be asked of Refinery: questions with typed params, answers as data, and the table of those that there are.

It imports what is below every room that answers; lines and HTML are written here, once.
"""
