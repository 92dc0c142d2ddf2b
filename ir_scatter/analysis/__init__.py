"""Static analysis of scatter nodes, of the values they depend on, and of groups of equal nodes."""
