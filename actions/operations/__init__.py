"""The operations of people on actions: skip, restore, signal, and changes of dependencies."""
