"""Analyses of programs: their tree at either stage of the compilation, and each program."""
