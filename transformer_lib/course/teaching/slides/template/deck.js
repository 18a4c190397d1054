// Starts a deck: formulas first, then every slide is fitted into its frame, then reveal.js.
(() => {
  const WIDTH = 1280, HEIGHT = 720, LARGEST = 1.25, SMALLEST = 0.7, STEP = 0.05, LEGIBLE = 16, ZOOM = 1.4;
  const query = new URLSearchParams(location.search);
  const dark = on => document.documentElement.classList.toggle('dark', on);
  dark(query.get('theme') === 'dark');

  // Code and formulas that are too wide shrink alone; pictures get the height that the text leaves; where that is
  // too little, all text of the slide shrinks, in small steps. Short code and short output grow where room is left.
  const narrow = part => {
    part.style.removeProperty('font-size');
    part.classList.remove('wrapped');
    const room = part.parentElement.clientWidth;
    for (let tries = 0; tries < 4; tries++) {  // a formula's unit is the height of an x, in whole pixels
      const inner = part.matches('pre') ? 0 : part.firstElementChild.getBoundingClientRect().width;
      const width = Math.max(part.scrollWidth, inner);
      if (width <= room) return;
      const size = Math.floor(10 * parseFloat(getComputedStyle(part).fontSize) * room / width - 1) / 10;
      part.style.fontSize = `${Math.max(size, LEGIBLE)}px`;
      part.classList.toggle('wrapped', size < LEGIBLE);
    }
  };
  const fits = slide => slide.scrollHeight <= HEIGHT && slide.scrollWidth <= WIDTH;
  const zoom = slide => {
    const blocks = [...slide.querySelectorAll('pre')];
    if (!blocks.length || blocks.some(block => block.style.fontSize)) return;  // one is too wide already
    for (let larger = ZOOM; larger > 1; larger -= STEP) {
      slide.style.setProperty('--zoom', larger.toFixed(2));
      if (fits(slide) && blocks.every(block => block.scrollWidth <= block.clientWidth)) return;
    }
    slide.style.removeProperty('--zoom');
  };
  const fit = slide => {
    slide.style.removeProperty('--zoom');
    const pictures = [...slide.querySelectorAll('.pictures')];
    for (let scale = LARGEST; scale >= SMALLEST; scale -= STEP) {
      slide.style.setProperty('--scale', scale.toFixed(2));
      slide.querySelectorAll('pre, mjx-container[display]').forEach(narrow);
      pictures.forEach(box => box.style.setProperty('height', '0'));
      const room = (HEIGHT - slide.scrollHeight) / (pictures.length || 1);
      const wanted = pictures.length ? Math.min(...pictures.map(needed)) : 0;
      pictures.forEach(box => box.style.setProperty('height', `${Math.max(0, Math.floor(room) - 2)}px`));
      if (room >= wanted && fits(slide)) return pictures.length ? undefined : zoom(slide);
    }
  };
  const needed = box => Math.min(400, ...[...box.querySelectorAll('img')].map(image => image.naturalHeight * 0.8));

  const fitAll = async () => {
    await Promise.all([...document.images].map(image => image.decode().catch(() => {})));
    const leaves = [...document.querySelectorAll('.slides > section > section')];
    document.body.classList.add('measuring');
    leaves.forEach(fit);
    document.body.classList.remove('measuring');
  };

  const start = async () => {
    await fitAll();
    await Reveal.initialize({
      width: WIDTH, height: HEIGHT, margin: 0.03, center: false, hash: true, slideNumber: 'c/t', transition: 'none',
      backgroundTransition: 'none', pdfSeparateFragments: false, pdfMaxPagesPerSlide: 1,
      showNotes: query.has('print-pdf') && query.has('notes') ? 'separate-page' : false,
      plugins: [RevealNotes],
      keyboard: { 68: () => dark(!document.documentElement.classList.contains('dark')) },
    });
    // a second time, without effect: only so that ? lists the key
    Reveal.addKeyBinding({ keyCode: 68, key: 'D', description: 'Dark or light' }, () => {});
    document.body.classList.add('ready');
  };

  document.querySelectorAll('.piece > p > strong:first-child').forEach(strong => {
    if (strong.textContent.startsWith('Predict') && !strong.previousSibling) strong.parentElement.classList.add('ask');
  });
  window.MathJax = {
    tex: { inlineMath: [['$', '$'], ['\\(', '\\)']], displayMath: [['$$', '$$'], ['\\[', '\\]']], processEscapes: true, tags: 'ams' },
    svg: { fontCache: 'global' },
    options: { enableMenu: false },
    startup: { pageReady: () => MathJax.startup.defaultPageReady().then(start) },
  };
})();
