"""Does a design detect an effect, and does a measure mean what its name says?"""
