from .client import NeodysClient as NeodysClient
from .oef import OrbitRecord as OrbitRecord
from .portal import Portal as Portal
