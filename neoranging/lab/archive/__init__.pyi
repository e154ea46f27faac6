from .client import NeodysClient as NeodysClient
from .http import Politeness as Politeness
from .oef import OrbitRecord as OrbitRecord
from .portal import Portal as Portal
