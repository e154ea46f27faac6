from .catalogue import Catalogue as Catalogue
from .catalogue import load_catalogue as load_catalogue
from .catalogue import read_orbits as read_orbits
from .dcriteria import d_drummond as d_drummond
from .dcriteria import d_jopek as d_jopek
from .dcriteria import d_sh as d_sh
from .elements import OrbitalElements as OrbitalElements
from .nbody import nbody_states as nbody_states
