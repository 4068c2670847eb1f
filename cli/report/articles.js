// SPDX-License-Identifier: MIT
// Draws the page of freehold articles from its JSON.
'use strict';
(() => {
  const { data, make, byId, number, ratioBar } = page;
  const names = ['', 'Testing distributed memory pools', 'Memory management, pools compared', 'Practical testing 30: reducing contention',
    'Scaling of memory intensive multi-threaded applications', 'Thread-local allocation'];
  const looks = { reproduced: 'reproduced', refuted: 'refuted', undecided: 'undecided' };

  function bar(claim) {
    if (claim.ratio === null) return '';
    const good = claim.at_least ? claim.ratio >= claim.threshold : claim.ratio <= claim.threshold;
    const top = Math.max(2 * claim.threshold, Math.min(claim.greatest_ratio, 4 * claim.threshold));
    return ratioBar(claim.ratio, claim.least_ratio, claim.greatest_ratio, claim.threshold, good, top);
  }
  const range = (claim) => (claim.ratio === null ? '' : `${number(claim.ratio, 2)} (${number(claim.least_ratio, 2)}–${number(claim.greatest_ratio, 2)})`);
  const wanted = (claim) => (claim.ratio === null ? '' : `${claim.at_least ? '≥' : '≤'} ${claim.threshold}`);

  function claimsTable(claims) {
    return make('div', { class: 'card scroll' }, make('table', {},
      make('thead', {}, make('tr', {}, ...['claim', 'verdict', 'figure', '', 'ratio (in the sets)', 'reproduced if'].map((n) => make('th', { class: 'name' }, n)))),
      make('tbody', {}, ...claims.map((c) => make('tr', {},
        make('td', { class: 'name where' }, c.claim), make('td', { class: 'name' }, make('span', { class: `pill ${looks[c.verdict] || 'not-measured'}` }, c.verdict)),
        make('td', { class: 'name where' }, c.figure || '–', make('div', { class: 'muted' }, c.limits || '')), make('td', { class: 'name bars' }, bar(c)), make('td', { class: 'name' }, range(c)),
        make('td', { class: 'name' }, wanted(c)))))));
  }
  function figuresTable(table) {
    const cell = (tag, text, i) => make(tag, i === 0 ? { class: 'name' } : {}, text);
    return make('div', {}, make('p', { class: 'lead' }, `${table.title}.`), make('div', { class: 'card scroll' }, make('table', {},
      make('thead', {}, make('tr', {}, ...table.columns.map((c, i) => cell('th', c, i)))),
      make('tbody', {}, ...table.rows.map((row) => make('tr', {}, ...row.map((text, i) => cell('td', text, i))))))));
  }

  for (const article of data.settings.articles) {
    const claims = data.claims.filter((c) => c.article === article);
    if (claims.length === 0) continue;
    byId('articles').append(make('section', {}, make('h2', {}, `Article ${article}: ${names[article]}`), claimsTable(claims),
      ...data.tables.filter((t) => t.article === article).map(figuresTable)));
  }
  const count = (verdict) => data.claims.filter((c) => c.verdict === verdict).length;
  byId('count').textContent = `${count('reproduced')} of ${data.claims.length} claims are reproduced, ${count('refuted')} refuted, ` +
    `${count('undecided')} undecided, ${count('not testable')} not testable here.`;
  page.frame(data, [`medians of ${data.settings.repeat} sets`], 'freehold articles');
  page.finish();
})();
