from .ephemeris import Ephemeris as Ephemeris
