"""The version of the toolkit, here alone: the build, reports and `--version` read it."""

VERSION = "0.2.0"
