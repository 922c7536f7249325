"""Simulated nodes: profiles, kubelets, and the life cycle of pods as data. They are plain API clients."""
