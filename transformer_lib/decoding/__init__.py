"""From a trained model to sentences: `sampling` takes one token at a time, greedily or by chance, `beam` keeps several
prefixes; `translator` wraps a model and its two vocabularies: text in, text out.
"""
