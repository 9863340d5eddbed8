"""Sources are declared, shown, paused and removed."""
