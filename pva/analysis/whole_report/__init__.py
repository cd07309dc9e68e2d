"""Analyses of whole reports: at a glance, against budgets, against another report."""
