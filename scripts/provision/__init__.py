"""What `scripts/setup.py` does: everything between a fresh clone and a running Rillbase.

`command` is the story; each other module is one of its nouns. All results are recorded by what
they were made from (`stamp`), so that doing it again does nothing, quickly and without network.
"""
