"""The page Execution: the device timeline, its IPUs and steps."""
