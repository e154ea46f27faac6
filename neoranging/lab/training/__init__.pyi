from .config import TrainingConfig as TrainingConfig
from .data import TrainingArcs as TrainingArcs
from .data import load_arcs as load_arcs
from .fit import FitResult as FitResult
from .fit import fit_network as fit_network
from .fit import train as train
