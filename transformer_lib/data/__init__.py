"""Text as the model meets it: `corpora` loads sentence pairs, `tokenizers` turn text into ids and back, `batches` pads
them together, `metrics` scores translations. `context_generator` makes the context corpus. `gguf` reads the files in
which language models are handed around.
"""
