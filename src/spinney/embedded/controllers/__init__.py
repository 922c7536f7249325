"""The controllers of kube-controller-manager, as plain API clients."""
