"""Import and export of whole collections, one document per line.

lines      a stream of bytes as lines, decompressed and bounded
jobs       how far an import has come, noted in the transactions that bring it there
importing  lines as writes
exporting  pages as lines
"""
