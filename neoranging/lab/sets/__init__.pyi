from .arcs import form_arcs as form_arcs
from .arcs import to_core as to_core
from .schema import ArcTable as ArcTable
from .splits import split_set as split_set
from .store import ArcWriter as ArcWriter
from .store import read_arcs as read_arcs
from .truth import label_arcs as label_arcs
