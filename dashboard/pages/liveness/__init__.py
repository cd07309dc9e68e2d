"""The page Liveness: the curve of what is live, and the tabs below it."""
