"""Templates of stacks: parsing, validation and formatting."""
