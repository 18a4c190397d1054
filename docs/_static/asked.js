// @ts-check
// Questions and predictions answer on the pages, without a kernel. What is passed or said stays in this browser, in the
// form of the course's own progress file, and can be taken along.

(() => {
  const KEY = "transformer-course";
  /** @typedef {{version: number, passed: Record<string, Record<string, string>>, last: string}} Progress */
  /** @typedef {{text: string, why?: string, right?: boolean}} Option */
  /** @typedef {{id: string, options?: Option[], replies?: {value: number, why: string, right: boolean}[], tolerance?: number,
   *   otherwise?: string, low?: number, high?: number, right?: string, came?: number, close?: number, decimals?: number,
   *   shown?: string, surprise?: string}} Known what a page knows of one question */

  const today = () => new Date().toISOString().slice(0, 10);

  /** @returns {Progress} */
  function read() {
    try {
      const kept = JSON.parse(localStorage.getItem(KEY) ?? "{}");
      return { version: 1, last: "", ...kept, passed: { quiz: {}, prediction: {}, ...kept.passed } };
    } catch {
      return { version: 1, passed: { quiz: {}, prediction: {} }, last: "" };
    }
  }

  const seen = new Set(); // outcomes that were opened before anything was said

  /** A prediction as it is kept: the day, whether it came true, and what was said. @param {string} id */
  function guess(id) {
    const [date = "", how = "", ...said] = (read().passed.prediction[id] ?? "").split(" ");
    return { date, how, said: said.join(" ") };
  }

  /** @param {string} kind @param {string} id @param {string} said */
  function keep(kind, id, said) {
    const progress = read();
    progress.passed[kind][id] = said;
    progress.last = id.split(".")[0];
    try {
      localStorage.setItem(KEY, JSON.stringify(progress));
    } catch {
      // a browser that keeps nothing: the page answers all the same
    }
    document.dispatchEvent(new Event("course-progress"));
  }

  /** @param {string} kind @param {Record<string, string>} attributes @param {...(Node | string)} inside */
  function element(kind, attributes, ...inside) {
    const made = document.createElement(kind);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...inside);
    return made;
  }

  /**
   * What a question is answered with: a button for each option, or a line for a number.
   *
   * @param {Known} known
   * @param {string} label
   * @param {(said: string) => void} say
   */
  function controls(known, label, say) {
    if (known.options) {
      const group = element("div", { class: "letters", role: "group", "aria-label": `answers to ${known.id}` });
      known.options.forEach((option, n) => {
        const letter = "ABCDEFGH"[n], button = element("button", { type: "button", "aria-pressed": "false", "aria-label": `${letter}: ${option.text}` }, letter);
        button.addEventListener("click", () => {
          for (const each of group.children) each.setAttribute("aria-pressed", String(each === button));
          say(letter);
        });
        group.append(button);
      });
      return group;
    }
    const line = /** @type {HTMLInputElement} */ (element("input", { type: "text", inputmode: "decimal", size: "8", "aria-label": `a number for ${known.id}`, autocomplete: "off" }));
    const form = element("form", { class: "letters" }, line, element("button", { type: "submit" }, label));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      say(line.value.trim().replace(",", "."));
    });
    return form;
  }

  /**
   * The verdict on an answer, as in JupyterLab.
   *
   * @param {Known} known
   * @param {string} said
   * @returns {{right: boolean, why: string} | string} a sentence where nothing can be judged
   */
  function judged(known, said) {
    if (known.options) {
      const { right = false, why = "" } = known.options["ABCDEFGH".indexOf(said)];
      return { right, why };
    }
    const number = Number(said);
    if (said === "" || Number.isNaN(number)) return `answer must be a number, got “${said}”`;
    const reply = known.replies?.find(({ value }) => Math.abs(number - value) <= (known.tolerance ?? 0));
    return reply ?? { right: false, why: known.otherwise ?? "" };
  }

  /** @param {HTMLElement} box @param {Known} known */
  function ask(box, known) {
    const verdict = element("p", { class: "verdict", role: "status", "aria-live": "polite" });
    const answers = box.querySelector("details");
    if (read().passed.quiz[known.id]) verdict.textContent = `You had this one right on ${read().passed.quiz[known.id]}.`;
    const entry = controls(known, "Answer", (said) => {
      const reply = judged(known, said);
      verdict.textContent = typeof reply === "string" ? reply : `${reply.right ? "✓ Right." : "✗ Not quite."} ${reply.why}`;
      verdict.dataset.right = typeof reply === "string" ? "" : String(reply.right);
      if (typeof reply !== "string" && reply.right) keep("quiz", known.id, today());
      set(verdict);
    });
    if (answers) answers.before(entry, verdict);
    else box.append(entry, verdict);
  }

  /** @param {HTMLElement} box @param {Known} known */
  function foresee(box, known) {
    const noted = element("p", { class: "verdict", role: "status", "aria-live": "polite" });
    const before = guess(known.id);
    if (before.said) noted.textContent = `You said ${before.said} on ${before.date}.`;
    const entry = controls(known, "That is my guess", (said) => {
      const number = Number(said), wrong = !known.options && (said === "" || !(number >= (known.low ?? -Infinity) && number <= (known.high ?? Infinity)));
      if (wrong) return void (noted.textContent = `say a number from ${known.low} to ${known.high}, got “${said}”`);
      const kept = guess(known.id);
      if (kept.how && kept.how !== "open") return void (noted.textContent = `You committed to ${kept.said} on ${kept.date}, and that one counts.`);
      if (seen.has(known.id)) return void (noted.textContent = "You have seen what comes out, so this one is not counted. The next one is yours.");
      keep("prediction", known.id, `${today()} open ${known.options ? said : number}`);
      noted.textContent = `Noted: ${known.options ? said : number}. Now open what comes out below.`;
    });
    box.append(entry, noted);
  }

  /** How what came out compares with what was said. @param {Known} known @param {string} said */
  function compared(known, said) {
    const shown = (known.shown ?? "").replace(/^It is /, "");
    if (known.right) return said === known.right ? [true, `You said ${said}, and so it is. ${shown}`] : [false, `You said ${said}, it is ${shown} ${known.surprise}`];
    const written = (/** @type {number} */ value) => value.toFixed(known.decimals ?? 0), came = known.came ?? NaN;
    if (written(Number(said)) === written(came)) return [true, `You said ${said}, and ${written(came)} it is.`];
    if (Math.abs(Number(said) - came) <= (known.close ?? 0)) return [true, `You said ${said}, it is ${written(came)}: close enough.`];
    return [false, `You said ${said}, it is ${written(came)}. ${known.surprise}`];
  }

  /** @param {HTMLElement} box @param {Known} known */
  function reveal(box, known) {
    const line = [...box.querySelectorAll("b")].find((bold) => bold.textContent === known.shown);
    const fold = box.closest("details");
    const tell = () => {
      if (!line || (fold && !fold.open)) return;
      const { date, how, said } = guess(known.id);
      if (!said) return void seen.add(known.id);
      const [right, text] = compared(known, said);
      line.textContent = String(text);
      line.dataset.right = String(right);
      if (how === "open") keep("prediction", known.id, `${date} ${right ? "right" : "surprise"} ${said}`);
    };
    fold?.addEventListener("toggle", tell);
    if (!fold) tell();
  }

  /** Formulas in a reply. @param {HTMLElement} node */
  function set(node) {
    const math = /** @type {any} */ (window).MathJax;
    if (/\$/.test(node.textContent ?? "")) node.textContent = (node.textContent ?? "").replace(/\$([^$]+)\$/g, "\\($1\\)");
    math?.typesetPromise?.([node]);
  }

  /** How far a reader is, and a file of it to take along. @param {HTMLElement} box */
  function account(box) {
    const { quiz, prediction } = read().passed, came = Object.values(prediction).map((kept) => kept.split(" ")[1]);
    const met = came.filter((how) => how !== "open").length, right = came.filter((how) => how === "right").length;
    if (!Object.keys(quiz).length && !came.length) return;
    const file = new Blob([JSON.stringify(read(), null, 1) + "\n"], { type: "application/json" });
    const link = element("a", { href: URL.createObjectURL(file), download: "progress.json" }, "take it along");
    const says = `You had ${Object.keys(quiz).length} questions right, and ${right} of ${met} predictions came true. This browser remembers it; `;
    box.replaceChildren(says, link, " to JupyterLab, where ", element("code", {}, 'tl.progress.take("progress.json")'), " adds it to yours.");
  }

  for (const box of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-progress]"))) {
    account(box);
    document.addEventListener("course-progress", () => account(box));
  }

  const WAYS = { quiz: ask, predict: foresee, outcome: reveal };
  for (const box of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-asked]"))) {
    const way = WAYS[/** @type {keyof typeof WAYS} */ (box.dataset.asked)];
    way(box, JSON.parse(box.dataset.known ?? "{}"));
    box.querySelector(".tl-wake")?.remove();
  }
})();
