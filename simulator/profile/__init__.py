"""From a compiled program and its runs to the tables of a report."""
