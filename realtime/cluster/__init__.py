"""The matching grid as the control plane shows it."""
