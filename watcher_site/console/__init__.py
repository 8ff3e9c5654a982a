"""The parts that the console's pages share, and the pages that belong to no other app."""
