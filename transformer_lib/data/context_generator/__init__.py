"""The context corpus: English-German pairs, made by grammar, in which only context decides the translation.

`lexicon` lists the words, `german` and `english` inflect them, `frames` and `pronouns` build sentences, and
`generate` draws the splits and writes them:
`python -m transformer_lib.data.context_generator.generate --out data/context`.
"""
