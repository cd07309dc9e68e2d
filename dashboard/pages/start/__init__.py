"""The page Start: reports, traces and runs to open."""
