"""Activity in the demo tenant, so that every page of the console shows something that changes."""
