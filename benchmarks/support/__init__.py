"""Code that benchmarks share: reports, load, servers."""
