"""Which tests notice faults in the code that the slowest tests cover."""
