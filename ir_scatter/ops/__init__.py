"""Tables of facts about operators, from the specifications, and the NumPy kernels that compute them."""
