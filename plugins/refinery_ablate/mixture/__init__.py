"""Which mixture of a dataset's groups gives the best model: proxies are trained on samples, and a fit is checked.

`swarm` samples mixtures within limits, `predictor` fits what they cost in bits per byte, and `pool` has the tokens that
proxies take in exact shares. A mixture counts as better than the prior only by runs that did not choose it.
"""
