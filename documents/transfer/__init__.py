"""Whole collections in and out, a line for each document.

lines      a stream of bytes as lines, decompressed and bounded
jobs       how far an import has come, noted in the transactions that bring it there
importing  lines as writes
exporting  pages as lines
"""
