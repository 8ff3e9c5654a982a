"""Violations of unique constraints, and refusals for them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Expression, F, Model, UniqueConstraint

UNIQUE_VIOLATION = "23505"
SQLITE = "UNIQUE constraint failed: "


@contextmanager
def refuse_taken(model: type[Model], field: str, refusal: Exception) -> Iterator[None]:
    """Run a block in a transaction, and raise ``refusal`` if another row of the model has the value of a field.

    The database decides, so that one of two concurrent requests is refused.
    """
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        if not is_taken(error, model, field):
            raise
        raise refusal from error


def is_taken(error: IntegrityError, model: type[Model], field: str) -> bool:
    """Return whether an error reports that another row of the model has the value of a field.

    This is a violation of any unique constraint that contains the field. All others are internal errors, and must not
    be reported as a name that is taken.
    """
    violated = violated_constraint(error)
    return violated is not None and violated in constraints_with(model, field)


def violated_constraint(error: IntegrityError) -> str | None:
    """Return the name of the violated unique constraint, or None for another error.

    On SQLite it is the list of the constraint's columns, unless it has expressions.
    """
    cause = error.__cause__
    diagnosis: Any = getattr(cause, "diag", None)
    if diagnosis is not None:
        return diagnosis.constraint_name if diagnosis.sqlstate == UNIQUE_VIOLATION else None
    text = str(cause or error)
    return text.removeprefix(SQLITE) if text.startswith(SQLITE) else None


def constraints_with(model: type[Model], field: str) -> set[str]:
    """Return all names that databases use for the unique constraints with a field."""
    names = set()
    for constraint in model._meta.constraints:
        if isinstance(constraint, UniqueConstraint) and field in (parts := fields_of(constraint)):
            columns = ", ".join(qualified(model, part) for part in parts)
            names |= {constraint.name, f"index '{constraint.name}'", columns}
    column: Any = model._meta.get_field(field)
    if column.unique:
        names |= {f"{model._meta.db_table}_{column.column}_key", qualified(model, field)}
    return names


def fields_of(constraint: UniqueConstraint) -> list[str]:
    """Return the fields of a constraint in order, including those in expressions."""
    parts: list[Any] = []
    for expression in constraint.expressions:
        parts += expression.flatten() if isinstance(expression, Expression) else [expression]
    references: list[Any] = [part for part in parts if isinstance(part, F)]
    return [*constraint.fields, *(reference.name for reference in references)]


def qualified(model: type[Model], field: str) -> str:
    column: Any = model._meta.get_field(field)
    return f"{model._meta.db_table}.{column.column}"
