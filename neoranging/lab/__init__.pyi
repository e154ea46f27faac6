from . import archive as archive
from . import sets as sets
from . import simulation as simulation
from . import study as study
from . import training as training
