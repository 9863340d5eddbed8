"""Predicts the effect of writes before the server has responded.

Used only for the view of pending writes: the server decides every answer. So each part handles the
common cases, and reports everything else as unknown.
"""
