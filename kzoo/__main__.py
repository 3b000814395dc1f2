"""`python -m kzoo`: the command line of the kzoo installed for this Python."""

from kzoo.cli import main

if __name__ == "__main__":  # not when a worker process imports this module
    main()
