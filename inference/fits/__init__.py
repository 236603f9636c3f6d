"""Point fits of any agent, many subjects at once; missing answers, what a design can tell.

Imported by every room of this floor and by validation.
"""
