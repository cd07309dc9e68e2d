"""The files of an exploration's directory, which the simulator writes and `pva.many` reads."""

ABOUT = "exploration.json"
TABLE = "points.parquet"  # a row a point
POINTS, REPORTS = "points", "reports"  # folders: a file a point, a report a point
