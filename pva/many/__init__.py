"""Many reports at once: runs of several instances."""
