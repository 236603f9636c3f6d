"""Point fits of any agent, many subjects at once; missing answers; what a design can estimate.

Every room of this floor and validation import it.
"""
