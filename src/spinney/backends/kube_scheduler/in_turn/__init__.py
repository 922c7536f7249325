"""Release gangs one after another on Kubernetes 1.35, whose kube-scheduler can block two half-placed gangs forever."""
