"""The real Kubernetes control plane, built and run for tests and benchmarks."""
