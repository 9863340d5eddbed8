"""What several benchmarks share: reports, load, servers."""
