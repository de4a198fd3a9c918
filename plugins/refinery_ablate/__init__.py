"""Which of two training datasets gives the better model: small models are trained on both and compared, with intervals.

`statistics` says what differences mean and knows no model. `network`, `training_run` and `scoring` need torch, and
import only the loader besides, so that they run on a machine for training. Imports the core, and no other extension.
"""
