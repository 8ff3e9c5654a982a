"""Action plans that run on a real Nova."""
