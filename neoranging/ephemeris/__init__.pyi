from .states import earth_posvel as earth_posvel
from .states import earth_state as earth_state
from .states import load_cache as load_cache
from .states import observer_posvel as observer_posvel
from .states import observer_state as observer_state
from .states import save_cache as save_cache
from .states import site_state as site_state
from .states import tdb_mjd as tdb_mjd
