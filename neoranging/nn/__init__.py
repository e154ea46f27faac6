"""Networks: tensors in, tensors out.

Nothing here knows files of observations, tables or units; times are days, angles radians,
distances au, and the features are computed in the precision of the inputs (double, but for devices
that have none) because the angles of an arc differ by a thousandth of their size.
"""
