"""What happens to a PodCliqueSet before it is stored: defaults, checks, protection of what the operator manages."""
