"""The operations of users on actions: skip, restore, signal, and changes of dependencies."""
