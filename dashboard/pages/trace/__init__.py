"""The page Host trace: the host timeline, and its tables."""
