"""What a client can predict before the server has answered.

It serves only the view of pending writes: the server decides every answer. So each part handles the
common cases, and reports everything else as unknown.
"""
