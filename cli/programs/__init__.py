"""Running a program or a model for a command, under the names of the SDK."""
