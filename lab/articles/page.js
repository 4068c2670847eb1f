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
      make('thead', {}, make('tr', {}, ...['claim', 'verdict', 'figure', '', 'ratio (limits)', 'reproduced if'].map((n) => make('th', { class: 'name' }, n)))),
      make('tbody', {}, ...claims.map((c) => make('tr', {},
        make('td', { class: 'name where' }, c.claim), make('td', { class: 'name' }, make('span', { class: `pill ${looks[c.verdict] || 'not-measured'}` }, c.verdict)),
        make('td', { class: 'name where' }, c.figure || '–', make('div', { class: 'muted' }, c.limits || '')), make('td', { class: 'name bars' }, claimBar(c)), make('td', { class: 'name' }, claimRatio(c)),
        make('td', { class: 'name' }, claimWanted(c)))))));
  }
  function figuresTable(table) {
    const cell = (tag, text, i) => make(tag, i === 0 ? { class: 'name' } : {}, text);
    return make('div', { class: 'row' }, make('p', { class: 'lead' }, `${table.title}.`), make('div', { class: 'card scroll' }, make('table', {},
      make('thead', {}, make('tr', {}, ...table.columns.map((c, i) => cell('th', c, i)))),
      make('tbody', {}, ...table.rows.map((row) => make('tr', {}, ...row.map((text, i) => cell('td', text, i))))))));
  }

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
        section.append(make('div', { class: 'legend row' }, ...plot.lines.map((line, i) => make('span', {}, make('i', { class: 'swatch', style: `color: var(${lineColor(i)})` }), line.label))), grid);
      }
      const lines = plot.lines.map((line, i) => ({ label: line.label, color: lineColor(i), values: line.values,
        ranges: data.settings.repeat === 1 ? undefined : line.least.map((least, n) => (least === null ? null : [least, line.greatest[n]])) }));
      const top = 1.1 * Math.max(1e-3, ...known(plot.lines.flatMap((line) => line.greatest)));
      plotInto(grid, plot.title, plot.x, lines, { top, unit: '', digits: top < 2 ? 3 : 1, label: plot.y_name, xName: plot.x_name });
    }
  }

  for (const article of data.settings.articles) {
    const claims = data.claims.filter((c) => c.article === article);
    if (claims.length === 0) continue;
    const section = make('section', {}, make('h2', {}, `Article ${article}: ${names[article]}`), make('p', { class: 'lead' }, `${data.counts[data.settings.articles.indexOf(article)]}.`), claimsTable(claims));
    byId('articles').append(section);
    plotsOf(article, section);
    section.append(...data.tables.filter((t) => t.article === article).map(figuresTable));
  }
  const count = (verdict) => data.claims.filter((c) => c.verdict === verdict).length;
  byId('count').textContent = `${count('reproduced')} of ${data.claims.length} claims are reproduced, ${count('refuted')} refuted, ` +
    `${count('undecided')} undecided, ${count('not testable')} not testable here.`;
  page.frame(data, [], 'freehold articles');
  page.finish();
})();
