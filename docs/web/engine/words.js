// Words to numbers and back. A word's number is its row in the table of words; the first four mean no word.

export const [PAD, BOS, EOS, UNK] = [0, 1, 2, 3];
const SPECIAL = ["<pad>", "<bos>", "<eos>", "<unk>"];

/** One id per word or punctuation mark; the sentence's first letter is lower-cased, and `decode` restores it. */
export class Words {
  /** @param {string[]} words */
  constructor(words) {
    this.words = [...SPECIAL, ...words];
    this.ids = new Map(this.words.map((word, id) => [word, id]));
  }

  /**
   * "Show me!" -> ["show", "me", "!"]
   *
   * @param {string} text
   * @returns {string[]}
   */
  split(text) {
    const [first = "", ...rest] = text.trim();
    return (first.toLowerCase() + rest.join("")).match(/[\p{L}\p{N}_]+|[^\p{L}\p{N}_\s]/gu) ?? [];
  }

  /**
   * Return the ids of a text.
   *
   * @param {string} text
   * @throws {UnknownWords} if it has words that are not in the table
   */
  encode(text) {
    const tokens = this.split(text), unknown = tokens.filter((token) => !this.knows(token));
    if (unknown.length) throw new UnknownWords(unknown);
    return tokens.map((token) => this.ids.get(token) ?? UNK);
  }

  /** @param {string} token */
  knows(token) {
    return (this.ids.get(token) ?? UNK) > UNK;
  }

  /**
   * Return the text of ids, without special tokens and up to the first <eos>.
   *
   * @param {number[]} ids
   */
  decode(ids) {
    const text = this.tokens(ids).join(" ").replace(/\s+([.,!?;:])/g, "$1");
    const [first = "", ...rest] = text;
    return first.toUpperCase() + rest.join("");
  }

  /** @param {number[]} ids */
  tokens(ids) {
    const end = ids.indexOf(EOS);
    return ids.slice(0, end < 0 ? ids.length : end).filter((id) => id > UNK).map((id) => this.words[id]);
  }
}

/** A text with words that the translator has never seen. */
export class UnknownWords extends Error {
  /** @param {string[]} words */
  constructor(words) {
    super(`unknown: ${words.join(", ")}`);
    this.words = words;
  }
}
