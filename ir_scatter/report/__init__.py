"""A report and its formats: one file each."""
