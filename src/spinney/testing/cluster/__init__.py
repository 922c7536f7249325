"""A real Kubernetes cluster on one machine: control plane, kubelets, containers, network and DNS."""
