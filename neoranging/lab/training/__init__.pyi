from .config import NetworkConfig as NetworkConfig
from .config import TrainingConfig as TrainingConfig
from .fit import train as train
