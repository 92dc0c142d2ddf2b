"""Static analysis of scatter nodes: facts about the values they depend on, and groups of equal nodes."""
