"""What is documented of operators, as data, and what computes them."""
