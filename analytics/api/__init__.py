"""The calls of datasets' data plane."""
