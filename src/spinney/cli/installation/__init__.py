"""Commands about an installation: print it, examine it, take it away."""
