"""Benchmarks, one per file: `python -m benchmarks.NAME [--quick]`.

Each compares with its peers in the same run, checks its own results, prints a table, saves its raw
figures under benchmarks/results/ and ends with one line of JSON.
"""
