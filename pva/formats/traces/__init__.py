"""Host traces: PVTI files, Chrome JSON, Perfetto, and the traces of Triton."""
