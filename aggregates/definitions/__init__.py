"""Aggregates in the control plane: definitions, and how they are created, changed and dropped.

The row is authoritative. The storage node learns of an aggregate from the first call that needs it
and from a task after each change; a task also reports that it was dropped (`node_sync`).
"""
