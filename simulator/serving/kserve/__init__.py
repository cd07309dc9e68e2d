"""The KServe v2 protocol over HTTP and gRPC, and counters for Prometheus."""
