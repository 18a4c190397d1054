// The whole translator: English text in, German text out.

import { softmax } from "./arrays.js";
import { beamSearch, grow, likeliest } from "./decoding.js";
import { Run } from "./run.js";
import { Transformer } from "./transformer.js";
import { parse } from "./weights.js";
import { EOS, Words } from "./words.js";

/**
 * Fetch a file of weights and make a translator of it.
 *
 * @param {string | URL} address
 */
export async function load(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address}: ${answer.status} ${answer.statusText}`);
  return Translator.from(await answer.arrayBuffer());
}

export class Translator {
  /** @param {Transformer} model @param {Words} src @param {Words} tgt */
  constructor(model, src, tgt) {
    this.model = model;
    this.src = src;
    this.tgt = tgt;
  }

  /** @param {ArrayBuffer} buffer a safetensors file as the course writes it */
  static from(buffer) {
    const { config, extra, weights } = parse(buffer);
    return new Translator(new Transformer(config, weights), new Words(extra.src_words), new Words(extra.tgt_words));
  }

  /**
   * Translate a text word by word, each the likeliest.
   *
   * @param {string} text
   * @param {{cuts?: import("./run.js").Cut[], patches?: import("./run.js").Patch[], limit?: number,
   *   choose?: (logits: Float32Array) => number}} [options]
   */
  translate(text, { cuts, patches, limit, choose = likeliest } = {}) {
    const run = new Run({ cuts, patches }), tokens = this.src.split(text);
    const memory = this.model.encode(this.src.encode(text), run);
    const { ids, logits } = grow(this.model, memory, choose, { limit, run });
    const end = ids.at(-1) === EOS ? ids.length - 1 : ids.length;
    return {
      tokens, // of the source
      words: ids.slice(0, end).map((id) => this.tgt.words[id]),
      text: this.tgt.decode(ids),
      sure: ids.map((id, n) => softmax(logits[n])[id]), // the probability of each word that was chosen
      logits,
      memory,
      run,
    };
  }

  /**
   * Translate by beam search.
   *
   * @param {string} text
   * @param {{size: number, limit?: number, alpha?: number}} options
   */
  beam(text, options) {
    const memory = this.model.encode(this.src.encode(text));
    const ranked = beamSearch(this.model, memory, options);
    return { text: this.tgt.decode(ranked[0].ids), ranked };
  }
}
