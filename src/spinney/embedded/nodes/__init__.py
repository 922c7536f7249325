"""Simulated nodes: profiles, kubelets, and the life of a pod as data. API clients like any other."""
