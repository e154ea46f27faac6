"""The degenerate root is the topocentric one, smaller as the missing diurnal motion says."""

import numpy as np

from neoranging.lab.study.diurnal import diurnal_signal
from neoranging.lab.study.predictions import predict


def test_foretells_the_collapsed_root(table):
    signal = diurnal_signal(table)
    near, far = (predict("gauss", table, origin=o).rho for o in ("geocenter", "topocenter"))
    collapsed = near < 1e-3
    rows = collapsed & np.isfinite(far)
    assert rows.sum() > 30
    ratio = near[rows] / (signal.shrinkage[rows] * far[rows])
    assert np.median(np.abs(ratio - 1.0)) < 0.01
    assert np.mean(np.abs(ratio - 1.0) < 0.1) > 0.9


def test_noise_changes_the_root_but_not_the_ratio(table, exact_table):
    # the lines of sight enter by their normal alone
    exact, noisy = (diurnal_signal(t).shrinkage for t in (exact_table, table))
    np.testing.assert_allclose(np.median(noisy / exact), 1.0, rtol=1e-3)


def test_significance_falls_with_range_and_noise(table):
    plain = diurnal_signal(table).significance
    far = diurnal_signal(table.with_columns(rho_topo_au=2.0 * table["rho_topo_au"]))
    np.testing.assert_allclose(far.significance, 0.5 * plain)
    sigma = {name: 3.0 * table[name] for name in ("sigma_ra_rad", "sigma_dec_rad")}
    np.testing.assert_allclose(
        diurnal_signal(table.with_columns(**sigma)).significance, plain / 3.0
    )
