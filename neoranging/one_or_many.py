"""Objects of one arc, whose attributes are scalars, or of many, whose attributes are arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from astropy import units as u

from neoranging.display import html_table
from neoranging.typing import AnyArray, FloatArray, IntArray

if TYPE_CHECKING:
    from astropy.table import QTable


class OneOrMany(ABC):
    """Base of immutable objects that hold columns of M rows, one for each arc.

    That of one arc gives the only row of each column, and has no length. That of many gives the
    columns, has a length, is iterated and indexed. What they give are copies.
    """

    _scalar: bool
    """The object is of one arc."""

    @property
    @abstractmethod
    def _n_rows(self) -> int:
        """Number of rows of the columns, 1 of one arc."""

    @abstractmethod
    def _take(self, rows: IntArray, scalar: bool) -> Self:
        """Object of some rows, as of one arc or of many."""

    @abstractmethod
    def to_table(self) -> QTable:
        """Table of one row an arc."""

    @abstractmethod
    def _summary(self) -> dict[str, str]:
        """Names and values that show the object of one arc in notebooks."""

    def _quantity(self, column: FloatArray, unit: u.UnitBase) -> u.Quantity:
        return u.Quantity(column[0] if self._scalar else column, unit)

    def _array(self, column: FloatArray) -> FloatArray:
        """Copy of a column of vectors or matrices, or the only one of them."""
        return (column[0] if self._scalar else column).copy()

    def _value(self, column: AnyArray) -> Any:
        """Copy of a column of plain values, or the only one of them, as Python has it."""
        return column.item() if self._scalar else column.copy()

    def __len__(self) -> int:
        if self._scalar:
            raise TypeError(f"this {type(self).__name__} is of one arc and has no length")
        return self._n_rows

    def __getitem__(self, item: Any) -> Self:
        if self._scalar:
            raise TypeError(f"this {type(self).__name__} is of one arc and cannot be indexed")
        rows = np.arange(self._n_rows)[item]
        return self._take(np.atleast_1d(rows), scalar=rows.ndim == 0)

    def __iter__(self) -> Iterator[Self]:
        return (self[k] for k in range(len(self)))

    def __astropy_table__(self, cls: type, copy: bool, **kwargs: Any) -> Any:
        return cls(self.to_table(), copy=copy, **kwargs)

    def _repr_html_(self) -> str:
        return html_table(self._summary()) if self._scalar else str(self.to_table()._repr_html_())
