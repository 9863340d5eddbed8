"""Application performance monitoring: requests are counted and timed as they happen."""
