"""The same numbers sooner: what `path="fast"` runs in place of the model's own code.

`forward` is the training pass, `packing` its list of real tokens, `head_loss` its output head and cross-entropy in one;
`stepper` is one step of decoding, and `modern_stepper` one of a language model of today, whose weights `modern_weights`
lays out; `eligibility` says what cannot take this path, and why.
"""
