"""The table that the benchmark prints."""

from collections.abc import Sequence
from dataclasses import dataclass

HEADS = ("work", "measured", "reference", "ratio", "bound", "")


@dataclass(frozen=True)
class Line:
    """One measurement and its limit: at most ``factor`` times the reference, plus a constant.

    Measured and references are in the unit, milliseconds where none is named. With ``at_least`` the work must
    reach the bound instead.
    """

    work: str
    measured: float
    reference_name: str
    reference: float
    factor: float
    added_name: str = ""
    added: float = 0
    unit: str = "ms"
    at_least: bool = False

    @property
    def bound(self) -> float:
        return self.factor * self.reference + self.added

    @property
    def met(self) -> bool:
        return self.measured >= self.bound if self.at_least else self.measured <= self.bound

    def cells(self) -> tuple[str, ...]:
        terms = f"{self.factor:g} x {self.reference_name}" + (f" + {self.added_name}" if self.added_name else "")
        return (
            self.work,
            f"{self.measured:.2f} {self.unit}",
            f"{self.reference:.2f} {self.unit}",
            f"{self.measured / self.reference:.2f}" if self.reference else "",
            f"{'at least' if self.at_least else 'at most'} {terms} = {self.bound:.2f} {self.unit}",
            "ok" if self.met else "MISSED",
        )


def written(lines: Sequence[Line]) -> str:
    """Return the lines as a text table with aligned columns."""
    rows = [HEADS, *(line.cells() for line in lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, tuple("-" * width for width in widths))
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
