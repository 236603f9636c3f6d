"""Are parameters, and models, recovered from a design?"""
