"""`python -m ir_scatter_cli`."""

from ir_scatter_cli.main import main

if __name__ == "__main__":
    main()
