"""The systems that benchmarks compare with."""
