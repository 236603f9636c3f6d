"""What a page is made of: tables, findings, figures, and the HTML around them.

Imported by every `*_page` module; itself imports the engine.
"""
