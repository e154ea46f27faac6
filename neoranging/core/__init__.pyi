from .admissible import range_intervals as range_intervals
from .answers import Answers as Answers
from .arcs import Arcs as Arcs
from .attributable import Attributables as Attributables
from .candidates import Thresholds as Thresholds
from .status import RangeStatus as RangeStatus
