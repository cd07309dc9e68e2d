"""Files turned into datasets, and back."""
