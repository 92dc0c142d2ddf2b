"""`python -m ir_scatter` runs the command line, which no other module of the library imports."""

from ir_scatter_cli.main import main

if __name__ == "__main__":
    main()
