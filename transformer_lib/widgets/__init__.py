"""Interactive figures: controls above a picture drawn by pure functions; saved, they stay a picture.

>>> import transformer_lib as tl
>>> panel = tl.widgets.dot_product()
>>> panel.set(angle=90).picture.says
'angle 90°, cosine 0.00, lengths 3.00 and 2.24: score 0.00'
"""

from .architecture import model_map, step_shapes
from .calm import smoothed_target, training_choices
from .controls import choice, number, switch
from .decoder_stepper import decoder_stepper
from .embeddings import embedding_plane
from .heads import attention_view
from .lookup import lookup_weights, soft_lookup
from .panel import Panel
from .projections import projection_stepper
from .scaling import Saturation, saturation, softmax_saturation
from .tokens import bpe_stepper
from .vectors import dot_product

__all__ = [
    "Panel",
    "Saturation",
    "attention_view",
    "bpe_stepper",
    "choice",
    "decoder_stepper",
    "dot_product",
    "embedding_plane",
    "lookup_weights",
    "model_map",
    "number",
    "projection_stepper",
    "saturation",
    "soft_lookup",
    "smoothed_target",
    "softmax_saturation",
    "step_shapes",
    "switch",
    "training_choices",
]
