"""Interactive figures: controls above a picture drawn by pure functions; a saved notebook keeps the picture.

>>> import transformer_lib as tl
>>> panel = tl.widgets.dot_product()
>>> panel.set(angle=90).picture.says
'angle 90°, cosine 0.00, lengths 3.00 and 2.24: score 0.00'
"""

from .ablations_panel import ablation_scores, ablations
from .aligning_panel import alignment
from .architecture_panel import model_map, step_shapes
from .cache_dial_panel import cache_dial
from .calm_panel import smoothed_target, training_choices
from .clinic_panel import patient_chart
from .controls import choice, number, switch
from .costs_panel import cost_calculator
from .deciding_panel import deciding_word
from .decoder_stepper_panel import decoder_stepper
from .descent_panel import gradient_descent
from .embeddings_panel import embedding_plane
from .explorer_panel import attention_explorer
from .gathering_panel import gathering
from .heads_panel import attention_view
from .lookup_panel import lookup_weights, soft_lookup
from .mask_dial_panel import mask_dial
from .masking_panel import mask_lab
from .next_word_panel import next_word
from .panel import Panel
from .patching_panel import patching
from .positions_panel import position_dial
from .projections_panel import projection_stepper
from .reordering_panel import shuffle
from .residuals_panel import residual_and_norm
from .rewarded_panel import rewarded
from .scaling_panel import Saturation, saturation, softmax_saturation
from .similarity_panel import similarity_weights, token_length
from .speculation_panel import speculation
from .splitting_panel import head_splitter
from .tokens_panel import bpe_stepper
from .training_panel import training_replay
from .two_heads_panel import two_heads
from .valley_panel import valley
from .vectors_panel import dot_product
from .walking_back_panel import backward_walk
from .walking_panel import encoder_steps, encoder_walk, hand_made_layer
from .watching import Watch, watch
from .writing_panel import writing

__all__ = [
    "Panel",
    "Saturation",
    "Watch",
    "ablation_scores",
    "ablations",
    "alignment",
    "attention_explorer",
    "attention_view",
    "backward_walk",
    "bpe_stepper",
    "cache_dial",
    "choice",
    "cost_calculator",
    "deciding_word",
    "decoder_stepper",
    "dot_product",
    "embedding_plane",
    "encoder_steps",
    "encoder_walk",
    "gathering",
    "gradient_descent",
    "hand_made_layer",
    "head_splitter",
    "lookup_weights",
    "mask_dial",
    "mask_lab",
    "model_map",
    "next_word",
    "number",
    "patching",
    "patient_chart",
    "position_dial",
    "projection_stepper",
    "residual_and_norm",
    "rewarded",
    "saturation",
    "shuffle",
    "soft_lookup",
    "similarity_weights",
    "smoothed_target",
    "softmax_saturation",
    "speculation",
    "step_shapes",
    "switch",
    "token_length",
    "training_choices",
    "training_replay",
    "two_heads",
    "valley",
    "watch",
    "writing",
]
