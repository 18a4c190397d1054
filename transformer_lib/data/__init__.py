"""Text as the model meets it: `corpora` loads sentence pairs, `tokenizers` turn text into ids and back, `batches` pads
them together, `metrics` scores translations. `context_generator` makes the context corpus. `byte_level` is the
tokenizer of real models, with the rules of `splitting`, the files that `tokenizer_json` reads, and `chat_template`;
`gguf` reads the files in which such models are handed around.
"""
