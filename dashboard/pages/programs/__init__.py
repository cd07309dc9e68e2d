"""The page Program tree: the programs at either stage, and their details."""
