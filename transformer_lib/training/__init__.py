"""How a model learns: `loop` trains it, and `options` lists everything that it can be told.

`loss` is the cross-entropy under teacher forcing, `schedules` the learning rate, `gradients` the gradient of a batch,
whole or in parts; `checkpoint` and `resuming` write a model or a whole run to a file, `distributed` lets processes
train together.
"""
