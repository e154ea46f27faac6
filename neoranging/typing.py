"""Types of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
StrArray = npt.NDArray[np.str_]
ByteArray = npt.NDArray[np.uint8]
CodeArray = npt.NDArray[np.int8]
"""`RangeStatus.code` of each arc."""
AnyArray = npt.NDArray[Any]
