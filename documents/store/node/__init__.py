"""Collections whose documents are in the storage node.

- `definitions.py`: the node has a copy of each collection's definition.
- `snapshot.py`: reads; `writes.py`: writes.
- `copies.py`: all documents of collections at one snapshot, for rebuilds.
"""
