"""Instances of one program that share its replicas, started by `poprun`."""
