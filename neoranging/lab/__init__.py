"""The laboratory: labelled sets, training of networks, and studies that judge any method.

Nothing outside it imports it; who only wants a range never meets it.
"""
