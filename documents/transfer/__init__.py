"""Import and export of whole collections, one document per line.

jobs       the progress of imports, stored in the transactions of their writes
importing  lines as writes
exporting  pages as lines
"""
