"""Figures, and what figures and the canvas of the dashboard share: colours, axes, rows of time.

`report.plot` and `trace.plot` have the figures of a notebook; the modules below draw them from the
results of analyses, for notebook and dashboard alike. plotly is imported nowhere else in `pva`.
"""
