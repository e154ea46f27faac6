"""Networks: arrays in, arrays out.

Everything here is written against the array API: numpy runs it for estimates, torch in training,
where gradients go through it. Nothing here imports torch, or knows files of observations, tables or
units; times are days, angles radians, distances au, and the features are computed in the precision
of the inputs (double, but for devices that have none) because the angles of an arc differ by a
thousandth of their size.
"""
