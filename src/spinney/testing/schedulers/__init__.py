"""Other projects' schedulers, built from their published Go modules and run on loopback beside a control plane."""
