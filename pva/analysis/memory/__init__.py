"""Analyses of memory: where it goes, what is live when, where variables lie."""
