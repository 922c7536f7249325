"""The whole control plane on rough days: slow wires, lost answers, processes that end in the middle."""
