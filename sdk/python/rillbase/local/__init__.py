"""What a client can tell by itself while the server has not answered yet.

It serves the view of writes that are on their way, nothing else: the server decides about every
answer. So each part knows what is common, and says of everything else that it does not know.
"""
