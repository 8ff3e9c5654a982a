"""The console's pages, forms and operations of stacks."""
