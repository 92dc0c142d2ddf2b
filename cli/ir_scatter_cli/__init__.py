"""The command line of ir_scatter: parse options, call the library, render, exit."""
