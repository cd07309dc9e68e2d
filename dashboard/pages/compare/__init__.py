"""The page Compare: what changed from one report, or host trace, to another."""
