"""The commands of `kzoo`, one file per group: each reads arguments, calls one function, prints the result."""
