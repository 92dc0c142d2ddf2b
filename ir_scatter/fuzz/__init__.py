"""Fuzzes scatter operators on runtimes: finds wrong results, refusals and crashes, and shrinks the inputs."""
