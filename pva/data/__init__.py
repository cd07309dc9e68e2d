"""The columns and arrays of a report by name: their sources, their ranges, and parts of them."""
