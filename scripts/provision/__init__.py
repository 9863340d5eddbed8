"""What `scripts/setup.py` does: everything between a fresh clone and a running Rillbase.

`command` is the main program; each other module is one of its parts. All results are recorded by a
fingerprint of their inputs (`stamp`), so that a repeated run is quick, changes nothing and needs no
network.
"""
