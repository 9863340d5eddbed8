"""Aggregates in the control plane: what they may be, and how they are made, changed and dropped.

The row decides. The storage node hears of an aggregate with the first call that needs it, and by a
task of each change; of its end by a task, too (`keeping`).
"""
