"""Interactive figures: controls above a picture drawn by pure functions; saved, they stay a picture.

>>> import transformer_lib as tl
>>> panel = tl.widgets.dot_product()
>>> panel.set(angle=90).picture.says
'angle 90°, cosine 0.00, lengths 3.00 and 2.24: score 0.00'
"""

from .ablations import ablation_scores, ablations
from .aligning import alignment
from .architecture import model_map, step_shapes
from .calm import smoothed_target, training_choices
from .claims import claim_browser
from .clinic import patient_chart
from .controls import choice, number, switch
from .costs import cost_calculator
from .decoder_stepper import decoder_stepper
from .embeddings import embedding_plane
from .explorer import attention_explorer
from .heads import attention_view
from .lookup import lookup_weights, soft_lookup
from .masking import mask_lab
from .panel import Panel
from .positions import position_dial
from .projections import projection_stepper
from .reordering import shuffle
from .residuals import residual_and_norm
from .reversing import reversal_heads
from .scaling import Saturation, saturation, softmax_saturation
from .similarity import similarity_weights, token_length
from .splitting import head_splitter
from .tokens import bpe_stepper
from .training import training_replay
from .vectors import dot_product
from .walking import encoder_steps, encoder_walk, hand_made_layer

__all__ = [
    "Panel",
    "Saturation",
    "ablation_scores",
    "ablations",
    "alignment",
    "attention_explorer",
    "attention_view",
    "bpe_stepper",
    "choice",
    "claim_browser",
    "cost_calculator",
    "decoder_stepper",
    "dot_product",
    "embedding_plane",
    "encoder_steps",
    "encoder_walk",
    "hand_made_layer",
    "head_splitter",
    "lookup_weights",
    "mask_lab",
    "model_map",
    "number",
    "patient_chart",
    "position_dial",
    "projection_stepper",
    "residual_and_norm",
    "reversal_heads",
    "saturation",
    "shuffle",
    "soft_lookup",
    "similarity_weights",
    "smoothed_target",
    "softmax_saturation",
    "step_shapes",
    "switch",
    "token_length",
    "training_choices",
    "training_replay",
]
