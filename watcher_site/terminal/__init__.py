"""Commands with subcommands for resources: list, show and change objects in a terminal."""
