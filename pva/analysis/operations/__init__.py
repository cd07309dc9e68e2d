"""Analyses of operations: what each layer of software, module or name costs."""
