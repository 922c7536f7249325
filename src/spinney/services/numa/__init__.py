"""The NUMA placement exporter, which runs on every node."""
