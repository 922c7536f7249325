"""How we talk to Kubernetes. Nothing in here knows any component of Spinney."""
