from .ephemeris import Ephemeris as Ephemeris
from .impacts import Impacts as Impacts
