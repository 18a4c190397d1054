"""The Transformer, to be read in this order.

`attention` is equation 1 of Vaswani et al. (2017); `masks` says who may see whom; `multihead` runs several attentions
side by side; `positional` says where a token is; `layers` holds what surrounds attention; `encoder` and `decoder`
stack the layers; `transformer` puts it all together, as `config` describes it. `cache` keeps keys and values while
decoding, `recording` reads the weights of attention, `interventions` forbids a reading or replaces a result,
`evaluating` switches dropout off for a while, `one_stack` has models of one stack, `modern` is today's block, `lora`
lets a trained model learn in small matrices beside its own, and `interop` converts from `torch.nn` and takes the
weights of others. `base` says what training and decoding ask of a model.
"""
