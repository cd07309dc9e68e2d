"""Read what a program left behind: reports and host traces as objects, dataframes and SQL."""
