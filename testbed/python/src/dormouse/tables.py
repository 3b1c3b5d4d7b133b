"""Tables of results: plain records, and what pandas, polars and Arrow make of them."""

from __future__ import annotations

import csv
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Iterable, Mapping, overload

from .errors import MissingPackage

Record = Mapping[str, Any]
"""A row of a table: its values by the names of their columns; `None` where there is no value."""

# Columns that are text even where every value of a run looks like a number.
_TEXT = {"name", "workload_name", "profile", "allocated_resources", "metadata", "host", "value", "key"}

# Endings of the names of columns that are fractions even where every value of a run is whole.
_FRACTIONS = ("_s", "_usd", "_per_hour", "_time", "stretch")


class Table(Sequence[Record]):
    """The rows of a table, each a record; all values of a column have one type."""

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self.columns = columns
        """The values of each column, by its name."""

    @classmethod
    def of(cls, records: Iterable[Record]) -> Table:
        """The table of these records, with a column for each name that one of them has."""
        rows = list(records)
        names = dict.fromkeys(name for row in rows for name in row)
        return cls({name: [row.get(name) for row in rows] for name in names})

    @classmethod
    def from_csv(cls, path: Path) -> Table:
        """The table in a CSV file whose first line names the columns."""
        with open(path, newline="", encoding="utf-8") as file:
            names, *rows = csv.reader(file)
        columns = zip(*rows) if rows else ([] for _ in names)
        return cls({name: _typed(name, column) for name, column in zip(names, columns)})

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    @overload
    def __getitem__(self, index: int) -> Record: ...

    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...

    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        return {name: column[index] for name, column in self.columns.items()}

    def __repr__(self) -> str:
        return f"<Table of {len(self)} rows: {', '.join(self.columns)}>"

    def to_pandas(self) -> Any:
        """The table as a `pandas.DataFrame`."""
        return _package("pandas", "to_pandas").DataFrame(dict(self.columns))

    def to_polars(self) -> Any:
        """The table as a `polars.DataFrame`."""
        return _package("polars", "to_polars").DataFrame(dict(self.columns))

    def to_arrow(self) -> Any:
        """The table as a `pyarrow.Table`."""
        return _package("pyarrow", "to_arrow").table(dict(self.columns))


def _typed(name: str, column: Iterable[str]) -> list[Any]:
    """The values of a column: all integers, all floats, or all text."""
    cells = list(column)
    kinds = () if name in _TEXT else (float,) if name.endswith(_FRACTIONS) else (int, float)
    for kind in kinds:
        try:
            return [kind(cell) if cell else None for cell in cells]
        except ValueError:
            continue
    return [cell or None for cell in cells]


def _package(name: str, what: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingPackage(f"{what} needs the package {name}: pip install {name}") from None
