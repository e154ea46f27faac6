from .twin import Twin as Twin
from .twin import make_twin as make_twin
