"""Sets up a fresh clone so that Rillbase can run; `scripts/setup.py` starts it.

`command` is the main program; each other module is one of its parts. All results are recorded with
a fingerprint of their inputs (`stamp`), so that a repeated run is quick, changes nothing and needs
no network.
"""
