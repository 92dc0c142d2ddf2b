"""What executes models or parts of them: one file for each runtime, always in a child process."""
