"""What a client can predict before the server has answered.

It serves the view of writes that are on their way, nothing else: the server decides about every
answer. So each part knows what is common, and says of everything else that it does not know.
"""
