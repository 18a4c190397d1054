"""The exercises of notebook 24: a lens, a map of patches, a sweep over heads, an experiment that decides, one path."""

from __future__ import annotations

import torch

from .model import Case, Exercise, integers, normal
from .slips import slips

# 24.1 Reading the stream too early -----------------------------------------------------------------------------------


def lens_ranks(streams, gain, table, word):
    """Return the rank of a word in the logit lens, one whole number for each stream: 0 where it is the likeliest.

    streams: [n_streams, d_model], of one position, the last behind the last layer. gain: [d_model], that of the final
    norm. table: [vocab_size, d_model], a row for each word. word: its id. The logits are (x · gain) @ table.T for a
    stream x; the rank counts the words that have a larger logit. (An RMSNorm also divides x by a number, which changes
    no rank, so leave it out.)
    """
    ranks = []
    for x in streams:
        logits = [float((x * gain * row).sum()) for row in table]
        ranks.append(sum(one > logits[word] for one in logits))
    return torch.tensor(ranks)


def _lens_cases():
    def case(label, seed, n_streams, d_model, vocab_size, word, size=1):
        drawn = normal(seed, (n_streams, d_model), (d_model,), (vocab_size, d_model))
        streams, gain, table = ((8 * each).round() / 8 for each in drawn)  # products are exact, in any order
        return Case(label, (size * streams, gain + 0.25, table, word))

    return [
        case("3 streams, 5 words", 2400, 3, 7, 5, 2),
        case("7 streams, 23 words", 2401, 7, 5, 23, 11),
        case("the first of 13 words", 2402, 5, 3, 13, 0),
        case("the last of 11 words", 2403, 2, 11, 11, 10),
        case("as many words as features and streams", 2404, 7, 7, 7, 3),
        case("long streams, 23 words", 2405, 5, 3, 23, 4, size=1024),
    ]


EXERCISE_1 = Exercise(
    "24.1", "Reading the stream too early", 7, 1, lens_ranks, _lens_cases,
    slips(
        "streams, gain, table, word", """
            logits = (streams * gain) @ table.T
            return (logits > logits[:, [word]]).sum(dim=-1)
        """,
        ("no gain", "(streams * gain)", "streams",
         "The gain of the final norm is missing: it stretches some features more than others, which changes ranks."),
        ("from 1", "(logits > ", "(logits >= ",
         "Your ranks begin at 1: the word itself counts. Count only those with a larger logit."),
        ("from the end", "logits > logits", "logits < logits",
         "You count the words with a smaller logit, so the likeliest has the largest rank."),
        ("the gain behind", "(streams * gain) @ table.T", "streams @ table.T * gain.mean()",
         "You multiply the logits; the gain belongs to the features, before the table."),
        ("over streams", "sum(dim=-1)", "sum(dim=0)",
         "You count over the streams. Each stream has a rank, the number of words that are ahead there."),
        ("the last stream's logit", "logits[:, [word]]", "logits[-1, word]",
         "You compare each stream with the word's logit in the last one; each has its own."),
        ("centred", "(streams * gain)", "((streams - streams.mean(dim=-1, keepdim=True)) * gain)",
         "You subtract the mean, as a LayerNorm does; an RMSNorm does not, and the mean changes ranks."),
        ("the word at that place", "(logits > logits[:, [word]]).sum(dim=-1)",
         "logits.argsort(dim=-1, descending=True)[:, word]",
         "You return which word has the rank `word`; return which rank the word has."),
        ("over a softmax", "(streams * gain) @ table.T", "((streams * gain) @ table.T).softmax(dim=-1)",
         "You rank probabilities. Without the norm's division logits are large, and most probabilities are rounded to "
         "0, where nothing is ahead of anything: compare the logits."),
        ("the likeliest word", "(logits > logits[:, [word]]).sum(dim=-1)", "logits.argmax(dim=-1)",
         "You return the likeliest word of each stream; return how many words are ahead of the one asked for."),
    ),
)  # fmt: skip


# 24.2 A map of patches -----------------------------------------------------------------------------------------------


def patch_map(rest, here, there, right, wrong):
    """Return how much of the difference each patch recovers, [n_layers + 1, seq_len].

    rest: a function; rest(stream, layer) goes on from a stream [seq_len, d_model] in front of a layer (from 0; n_layers
    is behind the last) and returns logits [seq_len, vocab_size]. here, there: the streams of the run that is patched
    and of the one that gives, [n_layers + 1, seq_len, d_model] each, which stay as they are. right, wrong: two ids. A
    patch replaces one position of one stream `here` by that of `there`. What counts is logit[right] - logit[wrong] at
    the last position: 0 where it is that of the run `here`, 1 where it is that of the run `there`.
    """

    def ahead(stream, layer):
        logits = rest(stream.clone(), layer)[-1]
        return float(logits[right]) - float(logits[wrong])

    low, high = ahead(here[0], 0), ahead(there[0], 0)
    rows = []
    for layer in range(len(here)):
        row = []
        for position in range(here.shape[1]):
            kept = [there[layer, t] if t == position else here[layer, t] for t in range(here.shape[1])]
            row.append((ahead(torch.stack(kept), layer) - low) / (high - low))
        rows.append(row)
    return torch.tensor(rows)


class _Rest:
    """A small causal stack: each layer adds something of the mean of what stands before."""

    def __init__(self, seed, n_layers, d_model, vocab_size):
        self.layers, self.table = normal(seed, (n_layers, d_model, d_model), (d_model, vocab_size))

    def streams(self, stream):
        found = [stream]
        for matrix in self.layers:
            count = torch.arange(1, len(stream) + 1, dtype=stream.dtype)[:, None]
            found.append(found[-1] + torch.tanh(found[-1].cumsum(0) / count @ matrix))
        return torch.stack(found)

    def __call__(self, stream, layer):
        for matrix in self.layers[layer:]:
            count = torch.arange(1, len(stream) + 1, dtype=stream.dtype)[:, None]
            stream = stream + torch.tanh(stream.cumsum(0) / count @ matrix)
        return stream @ self.table


def _map_cases():
    def case(label, seed, n_layers, seq_len, d_model, vocab_size, differs):
        rest = _Rest(seed, n_layers, d_model, vocab_size)
        here, new = normal(seed + 500, (seq_len, d_model), (seq_len, d_model))
        there = here.clone()
        there[differs] = new[differs]
        right, wrong = (
            int(each) for each in torch.randperm(vocab_size, generator=torch.Generator().manual_seed(seed))[:2]
        )
        return Case(label, (rest, rest.streams(here), rest.streams(there), right, wrong))

    return [
        case("2 layers, 3 positions, the first differs", 2420, 2, 3, 5, 7, [0]),
        case("3 layers, 5 positions, one between differs", 2421, 3, 5, 7, 11, [2]),
        case("5 layers, 2 positions, both differ", 2422, 5, 2, 3, 5, [0, 1]),
        case("one layer, 7 positions, the last but one differs", 2423, 1, 7, 5, 3, [5]),
        case("as many positions as features", 2424, 2, 5, 5, 5, [1, 3]),
    ]


EXERCISE_2 = Exercise(
    "24.2", "A map of patches", 11, 2, patch_map, _map_cases,
    slips(
        "rest, here, there, right, wrong", """
            def ahead(stream, layer):
                logits = rest(stream, layer)[-1]
                return logits[right] - logits[wrong]
            low, high = ahead(here[0], 0), ahead(there[0], 0)
            found = torch.empty(here.shape[:2])
            for layer in range(len(here)):
                for position in range(here.shape[1]):
                    stream = here[layer].clone()
                    stream[position] = there[layer, position]
                    found[layer, position] = (ahead(stream, layer) - low) / (high - low)
            return found
        """,
        ("without a copy", "here[layer].clone()", "here[layer]",
         "The patches of a layer pile up, so that all positions up to this one are replaced. Clone anew for each."),
        ("the wrong way round", "stream = here[layer].clone()\n        stream[position] = there[layer, position]",
         "stream = there[layer].clone()\n        stream[position] = here[layer, position]",
         "You patch the run `there` with a position of `here`; it is the other way round."),
        ("not a share", "(ahead(stream, layer) - low) / (high - low)", "ahead(stream, layer)",
         "You return the differences of logits themselves; return shares, 0 for the run `here` and 1 for `there`."),
        ("not from 0", "(ahead(stream, layer) - low)", "ahead(stream, layer)",
         "You divide without taking off the run `here`, so a patch that changes nothing is not 0."),
        ("over high", "/ (high - low)", "/ high",
         "You divide by the run `there` alone, so a patch of everything is not 1: divide by high - low."),
        ("upside down", "(ahead(stream, layer) - low)", "(high - ahead(stream, layer))",
         "Your shares are 1 where a patch changes nothing; 0 is the run `here`, and 1 the run `there`."),
        ("cut at 0 and 1", "return found", "return found.clamp(0, 1)",
         "You cut shares off at 0 and 1; a patch can do more than the whole difference, or the opposite."),
        ("probabilities", "rest(stream, layer)[-1]", "rest(stream, layer)[-1].softmax(dim=-1)",
         "You follow probabilities; what counts is the difference of two logits."),
        ("its own position's logits", "(ahead(stream, layer) - low)",
         "(rest(stream, layer)[position, right] - rest(stream, layer)[position, wrong] - low)",
         "You read the logits at the patched position; what counts is the last one, where the answer comes out."),
        ("from the beginning", "ahead(stream, layer) - low", "ahead(stream, 0) - low",
         "You always go on from layer 0; a stream in front of a later layer goes through the later layers only."),
        ("one layer too far", "ahead(stream, layer) - low", "ahead(stream, min(layer + 1, len(here) - 1)) - low",
         "Your patched stream skips a layer: rest(stream, layer) starts with that very layer."),
        ("the patched position's logits", "rest(stream, layer)[-1]", "rest(stream, layer)[0]",
         "You read the logits at the first position; what counts is the last."),
        ("one logit", "logits[right] - logits[wrong]", "logits[right]",
         "You follow one logit alone; what counts is logit[right] - logit[wrong]."),
    ),
    part="patch_map",
)  # fmt: skip


# 24.3 A sweep over all heads -----------------------------------------------------------------------------------------


def head_shares(run, outputs, right, wrong, low, high):
    """Return how much of the difference each head brings, the mean over all pairs, [n_layers, n_heads].

    Each pair has two prompts; the model runs on the second, and gets one head's output from the first. run: a function;
    run(layer, head, z) runs all pairs with the output of this head at the last word replaced by z [pairs, d_v], and
    returns the logits [pairs, vocab_size] behind the last word. outputs: [n_layers, pairs, n_heads, d_v], of the runs
    on the first prompts. right, wrong: [pairs], the ids of the answers to the first and to the second prompts. low,
    high: [pairs], logit[right] - logit[wrong] of the runs on the second prompts and on the first. A pair's share is 0
    at low and 1 at high.
    """
    rows = []
    for layer, of_layer in enumerate(outputs):
        row = []
        for head in range(of_layer.shape[1]):
            logits, shares = run(layer, head, of_layer[:, head].clone()), []
            for pair in range(len(right)):
                ahead = logits[pair, right[pair]] - logits[pair, wrong[pair]]
                shares.append((ahead - low[pair]) / (high[pair] - low[pair]))
            row.append(sum(shares) / len(shares))
        rows.append(torch.stack(row))
    return torch.stack(rows)


class _Heads:
    """Heads that write into one vector for each pair, with a bend behind, so that they do not simply add up."""

    def __init__(self, seed, n_layers, pairs, n_heads, d_v, vocab_size):
        self.own, other = normal(seed, *2 * [(n_layers, pairs, n_heads, d_v)])
        self.writes, self.table = normal(seed + 1, (n_layers, n_heads, d_v, 13), (13, vocab_size))
        self.other = self.own + other

    def logits(self, outputs):
        return torch.tanh(torch.einsum("lphd,lhdm->pm", outputs, self.writes) / 7) @ self.table

    def __call__(self, layer, head, z):
        outputs = self.own.clone()
        outputs[layer, :, head] = z
        return self.logits(outputs)


def _share_cases():
    def case(label, seed, *sizes):
        run = _Heads(seed, *sizes)
        pairs, vocab_size = sizes[1], sizes[-1]
        right = integers(seed, (pairs,), 0, vocab_size - 1)
        wrong = right + 1
        rows = torch.arange(pairs)
        low, high = (each[rows, right] - each[rows, wrong] for each in map(run.logits, (run.own, run.other)))
        return Case(label, (run, run.other, right, wrong, low, high))

    return [
        case("2 layers, 3 pairs, 5 heads", 2440, 2, 3, 5, 7, 11),
        case("3 layers, 2 pairs, 2 heads", 2441, 3, 2, 2, 5, 7),
        case("one layer, 7 pairs, 3 heads", 2442, 1, 7, 3, 2, 5),
        case("5 layers, 3 pairs, one head", 2443, 5, 3, 1, 3, 23),
        case("as many pairs as heads and layers", 2444, 3, 3, 3, 3, 5),
    ]


EXERCISE_3 = Exercise(
    "24.3", "A sweep over all heads", 11, 3, head_shares, _share_cases,
    slips(
        "run, outputs, right, wrong, low, high", """
            n_layers, pairs, n_heads, d_v = outputs.shape
            rows, found = torch.arange(pairs), torch.empty(n_layers, n_heads)
            for layer in range(n_layers):
                for head in range(n_heads):
                    logits = run(layer, head, outputs[layer, :, head])
                    ahead = logits[rows, right] - logits[rows, wrong]
                    found[layer, head] = ((ahead - low) / (high - low)).mean()
            return found
        """,
        ("zeros", "outputs[layer, :, head])", "torch.zeros(pairs, d_v))",
         "You put zeros in the place of the head's output; put in what it returned on the first prompt of the pair."),
        ("a mean of the pairs", "outputs[layer, :, head])", "outputs[layer, :, head].mean(0).expand(pairs, -1))",
         "Every pair gets the mean output; each pair has its own first prompt."),
        ("not from 0", "(ahead - low) / (high - low)", "ahead / (high - low)",
         "You did not take off `low`, so a head that changes nothing does not get 0."),
        ("not a share", "(ahead - low) / (high - low)", "ahead - low",
         "You return how many logits a head moves; a share is divided by high - low."),
        ("the lead itself", "((ahead - low) / (high - low)).mean()", "ahead.mean()",
         "You return the lead itself; a share is 0 at `low` and 1 at `high`."),
        ("over high", "/ (high - low)", "/ high",
         "You divide by `high` alone, so a head that does all of it does not get 1: divide by high - low."),
        ("from high to low", "(ahead - low) / (high - low)", "(ahead - high) / (low - high)",
         "You have `low` and `high` the wrong way round: low is 0, high is 1."),
        ("cut at 0 and 1", "((ahead - low) / (high - low)).mean()", "((ahead - low) / (high - low)).clamp(0, 1).mean()",
         "You cut shares off at 0 and 1; a head can do more than the whole difference, or the opposite."),
        ("summed", "((ahead - low) / (high - low)).mean()", "((ahead - low) / (high - low)).sum()",
         "You sum over the pairs; a share is their mean."),
        ("the first pair", "((ahead - low) / (high - low)).mean()", "((ahead - low) / (high - low))[0]",
         "Only the first pair counts; take the mean over all of them."),
        ("probabilities", "run(layer, head, outputs[layer, :, head])",
         "run(layer, head, outputs[layer, :, head]).softmax(dim=-1)",
         "You follow probabilities; what counts is the difference of two logits."),
        ("axes renamed", "outputs[layer, :, head])", "outputs[layer].reshape(n_heads, pairs, d_v)[head])",
         "A reshape does not exchange the axes of pairs and heads: take outputs[layer, :, head]."),
        ("a share of sums", "((ahead - low) / (high - low)).mean()", "(ahead - low).mean() / (high - low).mean()",
         "You divide the mean by the mean, so pairs with a large difference count more; take each pair's share first."),
        ("one logit", "logits[rows, right] - logits[rows, wrong]", "logits[rows, right]",
         "You follow the right answer's logit alone; what counts is logit[right] - logit[wrong]."),
        ("the wrong answer ahead", "logits[rows, right] - logits[rows, wrong]",
         "logits[rows, wrong] - logits[rows, right]",
         "You count the wrong answer's lead; right and wrong are swapped."),
        ("all pairs with all answers", "logits[rows, right] - logits[rows, wrong]",
         "(logits[:, right] - logits[:, wrong]).mean(1)",
         "logits[:, right] takes every pair's answer from every pair; pick row i for pair i, with two indices."),
    ),
)  # fmt: skip


# 24.4 An experiment that decides -------------------------------------------------------------------------------------


def decisive(facts):
    """Return an experiment that tells three stories about a head apart: [question, country, asked, of], four words.

    facts: {question: {country: answer}}. In the experiment the head's output is taken from a run that asks a question
    about a country, and put into a run in which something is asked of a country. By the first story it brings nothing:
    the model says facts[asked][of]. By the second it brings the answer: facts[question][country]. By the third it
    brings the country: facts[asked][country]. All of these facts must be there, and no two of them may be equal.
    """
    for question, country in ((q, c) for q in facts for c in facts[q]):
        for asked, of in ((q, c) for q in facts for c in facts[q]):
            foretold = {facts[asked][of], facts[question][country], facts[asked].get(country)}
            if country in facts[asked] and len(foretold) == 3:
                return [question, country, asked, of]
    raise ValueError("facts must allow such an experiment")


def _undecided(facts, result):
    """Name what is missing, or two stories that foretell the same; None if the experiment decides."""
    try:
        question, country, asked, of = (str(word) for word in result)
    except (TypeError, ValueError):
        return "Return four words: question, country, asked, of."
    for name, (which, whose) in {
        "first": (asked, of),
        "second": (question, country),
        "third": (asked, country),
    }.items():
        if whose not in facts.get(which, {}):
            return f"The {name} story says facts[{which!r}][{whose!r}], and there is no such fact."
    nothing, answer, carried = facts[asked][of], facts[question][country], facts[asked][country]
    chosen = f"After {(question, country, asked, of)}"
    if nothing == answer == carried:
        return f"{chosen} all three stories foretell {nothing}."
    if answer == carried:
        return f"{chosen} the answer and the country foretell the same word, {answer}: nothing tells them apart."
    if nothing == carried:
        return f"{chosen} the country foretells {carried}, which the model says without the patch, too."
    if nothing == answer:
        return f"{chosen} the answer foretells {answer}, which the model says without the patch, too."
    return None


def _experiment_cases():
    money = {"France": "euro", "Italy": "euro", "Japan": "yen", "Brazil": "real"}
    speech = {"France": "French", "Austria": "German", "Germany": "German", "Brazil": "Portuguese"}
    seat = {"France": "Paris", "Italy": "Rome", "Japan": "Tokyo", "Austria": "Vienna"}
    return [
        Case(
            "two questions, two countries",
            ({"capital": {"Japan": "Tokyo", "China": "Beijing"}, "currency": {"Japan": "yen", "China": "yuan"}},),
        ),
        Case("countries that share a currency", ({"currency": money, "capital": seat},)),
        Case("countries that share a language", ({"language": speech, "capital": seat},)),
        Case(
            "one country in both tables",
            (
                {
                    "capital": {"Peru": "Lima", "Cuba": "Havana", "Iran": "Tehran"},
                    "language": {"Mali": "French", "Cuba": "Spanish"},
                },
            ),
        ),
        Case("three questions", ({"language": speech, "currency": money, "capital": seat},)),
        Case(
            "capitals named like their country",
            (
                {
                    "capital": {"Mexico": "Mexico", "Panama": "Panama", "Chad": "Ndjamena"},
                    "name": {"Mexico": "Mexico", "Panama": "Panama", "Chad": "Chad"},
                },
            ),
        ),
    ]


EXERCISE_4 = Exercise(
    "24.4", "An experiment that decides", 9, 2, decisive, _experiment_cases,
    slips(
        "facts", """
            places = [(q, c) for q in facts for c in facts[q]]
            for question, country in places:
                for asked, of in places:
                    if country in facts[asked]:
                        foretold = [facts[asked][of], facts[question][country], facts[asked][country]]
                        if len(set(foretold)) == 3:
                            return [question, country, asked, of]
        """,
        ("the first that comes", "if len(set(foretold)) == 3", "if foretold",
         "You take the first experiment that comes, which asks the same question of the same country."),
        ("other country, same question", "if len(set(foretold)) == 3",
         "if asked == question and foretold[0] != foretold[1]",
         "You change the country alone. Where both runs ask the same question, the answer and the country foretell the "
         "same word."),
        ("other question, same country", "if len(set(foretold)) == 3", "if of == country and asked != question",
         "You change the question alone. Where both runs are about one country, bringing the country changes nothing."),
        ("both different", "if len(set(foretold)) == 3", "if asked != question and of != country",
         "Another question and another country are not enough: two countries may share an answer."),
        ("unknown facts", "if country in facts[asked]:\n            foretold",
         "if question != asked and country not in facts[asked]:\n            return [question, country, asked, of]\n"
         "        if country in facts[asked]:\n            foretold",
         "The third story needs facts[asked][country]; where a table lacks that country, it foretells nothing."),
    ),
    judge=_undecided,
    items="words",
)  # fmt: skip


# 24.5 One path alone -------------------------------------------------------------------------------------------------


def scores_off_a_path(x, piece, gain, W_Q, W_K):
    """Return the scores of one head if its keys do not see a piece of the stream, [seq_len, seq_len].

    x, piece: [seq_len, d_model], the stream and one of its terms. gain: [d_model], that of the norm in front of the
    layer: y = gain · x / √(mean(x²)), a token at a time. W_Q, W_K: [d_model, d_k]. Queries are made from the whole
    stream, keys from the stream without the piece, both behind the norm. Scores are divided by √d_k; rows are queries.
    """

    def normed(row):
        return gain * row / (row * row).mean() ** 0.5

    rows = []
    for one in x:
        query = normed(one) @ W_Q
        keys = [normed(other - gone) @ W_K for other, gone in zip(x, piece, strict=True)]
        rows.append(torch.stack([query @ key for key in keys]) / W_Q.shape[1] ** 0.5)
    return torch.stack(rows)


def _path_cases():
    def case(label, seed, seq_len, d_model, d_k):
        x, piece, gain, W_Q, W_K = normal(seed, *2 * [(seq_len, d_model)], (d_model,), *2 * [(d_model, d_k)])
        return Case(label, (x + piece, piece, gain, W_Q, W_K))

    return [
        case("3 tokens", 2460, 3, 7, 5),
        case("5 tokens, one number in a key", 2461, 5, 3, 1),
        case("11 tokens", 2462, 11, 5, 2),
        case("a single token", 2463, 1, 5, 3),
        case("as many tokens as features", 2464, 7, 7, 7),
    ]


EXERCISE_5 = Exercise(
    "24.5", "One path alone", 6, 2, scores_off_a_path, _path_cases,
    slips(
        "x, piece, gain, W_Q, W_K", """
            def normed(y):
                return gain * y / y.square().mean(dim=-1, keepdim=True).sqrt()
            query = normed(x) @ W_Q
            key = normed(x - piece) @ W_K
            return query @ key.T / W_Q.shape[1] ** 0.5
        """,
        ("out of the queries", "query = normed(x) @ W_Q\nkey = normed(x - piece)",
         "query = normed(x - piece) @ W_Q\nkey = normed(x)",
         "You took the piece out of the queries; it is the keys that must not see it."),
        ("out of both", "query = normed(x)", "query = normed(x - piece)",
         "You took the piece out of queries and keys; queries read the whole stream."),
        ("behind the norm", "normed(x - piece)", "(normed(x) - piece)",
         "You took the piece off behind the norm, where it has another size; take it out of the stream, then norm."),
        ("each normed", "normed(x - piece)", "(normed(x) - normed(piece))",
         "You normed the stream and the piece each by itself; the norm divides by the length of what is left."),
        ("the old norm", "normed(x - piece)", "(gain * (x - piece) / x.square().mean(dim=-1, keepdim=True).sqrt())",
         "You divide by the length of the whole stream; the keys' norm sees only what is left, and divides by that."),
        ("nothing taken out", "normed(x - piece)", "normed(x)", "Your keys still see the piece."),
        ("the piece alone", "normed(x - piece)", "normed(piece)",
         "Your keys see the piece alone; they see everything but the piece."),
        ("no gain", "gain * y", "y", "The norm's gain is missing."),
        ("over d_model", "W_Q.shape[1]", "W_Q.shape[0]",
         "You divide by the root of d_model; it is that of d_k, the width of queries and keys."),
        ("no norm", "normed(x - piece)", "(x - piece)", "The keys are not normed."),
        ("unscaled", " / W_Q.shape[1] ** 0.5", "", "The scores are not divided by √d_k."),
        ("transposed", "query @ key.T", "key @ query.T", "Rows are queries, columns are keys."),
        ("added", "x - piece", "x + piece", "You added the piece once more; take it out."),
    ),
    gradients=("x", "W_Q", "W_K"),
)  # fmt: skip

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5)
