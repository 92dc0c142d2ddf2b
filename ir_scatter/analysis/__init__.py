"""What can be said of a scatter node without running it, and what makes nodes interchangeable."""
