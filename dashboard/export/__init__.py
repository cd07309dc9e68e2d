"""Reports and traces as one HTML file that needs no server, no network and no install.

`write.py` puts it together: the pages of the dashboard as data (`pages.py`), timelines packed
(`timelines.py`), the dashboard's scripts and styles, and `assets`, which read those data in place
of a server.
"""
