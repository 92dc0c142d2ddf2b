"""Tables of what the specifications say of each operator, and the NumPy kernels that compute them."""
