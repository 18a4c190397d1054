// What the search shows first: a learner who looks for a word wants its explanation, the notebooks and the glossary,
// before the register of claims, functions of the library and pages for teachers. Within each group, Sphinx's own
// order holds.
// A name as in code, such as scaled_dot_product_attention, finds the library first.
var Scorer = {
  // Sphinx's numbers
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,

  // the start of a page's name, and what is added for it; more than any score that Sphinx gives
  groups: [
    ["notebooks/", 2000], ["docs/glossary", 2000], ["docs/register", 500], ["docs/api/", 0], ["docs/teaching/", -1000],
  ],
  score: ([page, , , , score]) => {
    const asked = new URLSearchParams(window.location.search).get("q") ?? "";
    const named = /[\p{L}\d][_.][\p{L}\d]/u.test(asked);
    const [, added] = Scorer.groups.find(([start]) => page.startsWith(start)) ?? ["", 1000];
    return score + (named && page.startsWith("docs/api/") ? 3000 : added);
  },
};
