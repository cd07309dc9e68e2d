"""The page Memory: where the memory of the tiles goes, and the tabs below it."""
