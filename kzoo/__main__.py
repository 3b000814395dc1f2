"""`python -m kzoo`: the command line of this Python's own kzoo."""

from kzoo.cli import main

if __name__ == "__main__":  # not when a worker process imports its parent's program
    main()
