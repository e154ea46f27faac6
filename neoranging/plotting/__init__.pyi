from .admissible_region import plot_admissible_region as plot_admissible_region
from .estimate import plot_estimate as plot_estimate
from .sky import plot_sky as plot_sky
from .tracklet import plot_tracklet as plot_tracklet
