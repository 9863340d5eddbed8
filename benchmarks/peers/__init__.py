"""What we compare ourselves with."""
