"""Who computes what, when: pipelines, replicas, I/O tiles, functions that are called again."""
