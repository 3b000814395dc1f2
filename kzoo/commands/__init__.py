"""What `kzoo …` does, a file a group of commands: read arguments, call one function, print the result."""
