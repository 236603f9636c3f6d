"""People in the chair: a static page that runs an experiment, and its files read back.

Imported by the command `page` and by the import; itself imports environments and the compiler.
"""
