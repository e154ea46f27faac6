"""
A night on one page
===================

In the morning a survey has a list of tracklets, and one question: what to follow up tonight. This
example makes the page that answers it, of real discovery nights.
"""

# %%
# The night
# ---------
# Three objects, one of them seen from three stations. Two fell on the Earth hours later; nobody
# would know from a list of positions.

from astropy import units as u

import neoranging as nr
from neoranging.night import NightPage

night = nr.read_tracklets(nr.sample("impactors"))
print(night.report)

# %%
# The page
# --------
# A telescope with a field of 20 arcminutes and a limit of 21.5 is to point a day after the last
# observation of each tracklet. The page stands in a frame here; its method ``write`` makes a file
# of it, and so does ``neoranging report`` from the command line.

NightPage(night, field=20.0 * u.arcmin, limit=21.5 * u.mag)

# %%
# How to read it
# --------------
# The impactors stand at the top: all draws meet the Earth, under either prior, and the panel says
# when and where. A day later nothing would be left to point at, so they are pointed at half way to
# the first falls.
#
# 2008 EK68 passed. Its range is open by a factor of three, its cloud is wide, and the dashed
# squares are the fields that cover it in order of probability.
#
# 2008 TC3 from Siding Spring (E12), six minutes of it, shows why two priors are on the page: most
# objects that move like this are harmless, and the population prior says so; the log-uniform one
# keeps the possibility open.
#
# :doc:`/guide/night_page` explains every part, and :doc:`/guide/what_next` the order.

# sphinx_gallery_capture_repr = ('_repr_html_',)
