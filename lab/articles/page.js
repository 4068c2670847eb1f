// SPDX-License-Identifier: MIT
// Draws the page of freehold articles from its JSON.
'use strict';
(() => {
  const { data, make, byId, number, claimBar, claimRatio, claimWanted, known, plotInto } = page;
  const names = ['', 'Testing distributed memory pools', 'Memory management, pools compared', 'Practical testing 30: reducing contention',
    'Scaling of memory intensive multi-threaded applications', 'Thread-local allocation'];
  const looks = { reproduced: 'reproduced', refuted: 'refuted', undecided: 'undecided' };

  function claimsTable(claims) {
    return make('div', { class: 'card scroll' }, make('table', { class: 'stacks' },
      make('thead', {}, make('tr', {}, ...['claim', 'verdict', 'figure', 'ratio (limits)', 'reproduced if'].map((n) => make('th', { class: 'name' }, n)))),
      make('tbody', {}, ...claims.map((c) => make('tr', {},
        make('td', { class: 'name where' }, c.claim), make('td', { class: 'name' }, make('span', { class: `pill ${looks[c.verdict] || 'not-measured'}` }, c.verdict)),
        make('td', { class: 'name where' }, c.figure || '–', make('div', { class: 'muted' }, c.limits || '')), make('td', { class: 'name where' }, claimBar(c), claimRatio(c)),
        make('td', { class: 'name' }, claimWanted(c)))))));
  }
  function figuresTable(table) {
    const cell = (tag, text, i) => make(tag, i === 0 ? { class: 'name' } : {}, text);
    return make('div', { class: 'row' }, make('p', { class: 'lead' }, `${table.title}.`), make('div', { class: 'card scroll' }, make('table', {},
      make('thead', {}, make('tr', {}, ...table.columns.map((c, i) => cell('th', c, i)))),
      make('tbody', {}, ...table.rows.map((row) => make('tr', {}, ...row.map((text, i) => cell('td', text, i))))))));
  }

  const theirs = (text) => make('span', {}, make('i', { class: 'theirs' }), text);
  const marksAre = { 1: 'where the article’s factor would put it', 4: 'the article’s, where its text says it' };
  const lineColor = (i) => `--c${i % 8}`;
  function plotsOf(article, section) {
    const plots = data.plots.filter((p) => p.article === article && p.lines.some((line) => known(line.values).length > 0));
    if (plots.length === 0) return;
    let grid = null, labels = '';
    for (const plot of plots) {
      const these = plot.lines.map((line) => line.label).join('|');
      if (these !== labels) {  // plots of the same lines share a legend
        labels = these;
        grid = make('div', { class: 'plots' });
        section.append(make('div', { class: 'legend row' }, ...plot.lines.map((line, i) => make('span', {}, make('i', { class: 'swatch', style: `color: var(${lineColor(i)})` }), line.label)), theirs(marksAre[article])), grid);
      }
      const lines = plot.lines.map((line, i) => ({ label: line.label, color: lineColor(i), values: line.values, marks: line.article.length ? line.article : undefined,
        ranges: data.settings.repeat === 1 ? undefined : line.least.map((least, n) => (least === null ? null : [least, line.greatest[n]])) }));
      const top = 1.1 * Math.max(1e-3, ...known(plot.lines.flatMap((line) => [...line.greatest, ...line.article])));
      plotInto(grid, plot.title, plot.x, lines, { top, unit: '', digits: top < 2 ? 3 : 1, label: plot.y_name, xName: plot.x_name });
    }
  }

  // The bars and the article's marks have a scale each, which ends with the greatest that is shown.
  function barsOf(article, section) {
    const figures = data.bars.filter((b) => b.article === article && b.bars.length > 0);
    if (figures.length === 0) return;
    const kinds = [...new Set(figures.flatMap((f) => f.bars.map((bar) => bar.kind)))].sort();
    const digits = (value) => (value === null ? '' : value < 99.95 ? value.toPrecision(3) : number(value, 0));
    const grid = make('div', { class: 'plots' });
    section.append(make('div', { class: 'legend row' }, ...kinds.map((kind, i) => make('span', {}, make('i', { class: 'swatch', style: `color: var(${lineColor(i)})` }), kind)), theirs('the author’s figures, by a scale of their own')), grid);
    for (const { title, unit, unit_of_article, bars } of figures) {
      const rows = make('div', { class: 'histogram compared' });
      const draw = (all) => {
        const shown = bars.filter((bar) => all || !bar.default);
        const end = (of) => Math.max(...known(shown.map(of))) / 100;
        const [ours, article] = [end((bar) => bar.greatest), end((bar) => bar.article)];
        rows.replaceChildren(...['', '', `here, ${unit}`, `article, ${unit_of_article}`].map((text) => make('span', { class: 'amount' }, text)), ...shown.flatMap((bar) => [make('span', { class: 'bin' }, bar.label),
          make('div', { class: 'column' }, make('div', { style: `width: ${bar.value / ours}%; background: var(${lineColor(kinds.indexOf(bar.kind))})` }),
            ...(data.settings.repeat === 1 ? [] : [make('i', { class: 'whisker', style: `left: ${bar.least / ours}%; right: ${100 - bar.greatest / ours}%` })]),
            ...(bar.article === null ? [] : [make('i', { class: 'theirs', style: `left: ${bar.article / article}%` })])),
          ...[bar.value, bar.article].map((value) => make('span', { class: 'amount' }, digits(value)))]));
      };
      const card = make('div', { class: 'card plot' }, make('h4', {}, title));
      if (bars.some((bar) => bar.default)) {
        const button = make('button', { type: 'button', class: 'switch', 'aria-pressed': 'true' }, 'with the default');
        button.addEventListener('click', () => {
          const on = button.getAttribute('aria-pressed') === 'false';
          button.setAttribute('aria-pressed', String(on));
          draw(on);
        });
        card.append(button);
      }
      card.append(rows);
      grid.append(card);
      draw(true);
    }
  }

  for (const article of data.settings.articles) {
    const claims = data.claims.filter((c) => c.article === article);
    if (claims.length === 0) continue;
    const section = make('section', {}, make('h2', {}, `Article ${article}: ${names[article]}`), make('p', { class: 'lead' }, `${data.counts[data.settings.articles.indexOf(article)]}.`), claimsTable(claims));
    byId('articles').append(section);
    plotsOf(article, section);
    barsOf(article, section);
    section.append(...data.tables.filter((t) => t.article === article).map(figuresTable));
  }
  const count = (verdict) => data.claims.filter((c) => c.verdict === verdict).length;
  byId('count').textContent = `${count('reproduced')} of ${data.claims.length} claims are reproduced, ${count('refuted')} refuted, ` +
    `${count('undecided')} undecided, ${count('not testable')} not testable here.`;
  page.frame(data, [], 'freehold articles');
  page.finish();
})();
