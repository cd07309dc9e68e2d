"""Figures: pure functions from the results of analyses to plotly figures."""
