"""From a trained model to sentences: `sampling` takes one token at a time, greedily or at random, and `beam` keeps
several prefixes; `stepping` gives both the next token's logits. `speculative` lets a small model draft for a large one,
and `paged` keeps the cache in pages. `translator` wraps a model and its two vocabularies: text in, text out.
`generating` goes on with a text as a language model does, and `chat` with a conversation.
"""
