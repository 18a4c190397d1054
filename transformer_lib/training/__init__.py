"""How a model learns: `loop` trains it, and `options` lists the settings of a run.

`loss` is the cross-entropy under teacher forcing, `evaluation` the same on other pairs, `schedules` the learning rate,
`precision` whether 16 or 32 bits, `gradients` the gradient of a batch, whole or in parts; `checkpoint` and `resuming`
write a model or a whole run to a file, `distributed` lets processes train together. Language models are taught by
`fine_tuning`, from prompts and their `answers`, and by the losses of `preferences`, from judgements.
"""
