"""Policies: rules that are evaluated before and after actions on clusters (docs/compatibility.md, "Policies")."""
