// SPDX-License-Identifier: MIT
// Draws the page of freehold timers from its JSON.
'use strict';
(() => {
  const { data, make, byId, number, megabytes, switches, plotInto, plural, known, heats, heat, figure, claimBar, claimRatio, claimWanted } = page;
  const { settings } = data;
  const names = settings.structures.map((s) => s.name);
  // The six that the question is about come first, each with a colour that no other line has.
  const six = ['wheel', 'queue', 'article', 'article-private', 'libuv', 'asio'];
  const others = names.filter((name) => !six.includes(name));
  const colorOf = (name) => ['--c3', '--c0', '--c1', '--c4', '--c2', '--c5'][six.indexOf(name)] || ['--c6', '--c7'][others.indexOf(name) % 2];
  const sources = new Map(settings.structures.map((s) => [s.name, s.source]));
  const loads = { alone: 'nothing else runs', busy: 'beside threads that touch memory', heap: 'beside threads that allocate and free' };
  const phaseOf = (series, phase) => (series ? series.phases.find((p) => p.phase === phase) : undefined);
  const find = (text, load, structure) => data.series.find((s) => s.text === text && s.load === load && s.structure === structure);
  const rows = [...new Map(data.series.map((s) => [s.text, s])).values()];
  const sumOf = (row) => row.phases[row.phases.length - 1].phase;

  const words = { reproduced: 'reached', refuted: 'missed', undecided: 'undecided' };
  function targets() {
    const all = data.targets;
    if (all.length === 0) return byId('targets').remove();
    byId('targets-title').textContent = `${all.filter((t) => t.outcome === 'reproduced').length} of ${plural(all.length, 'target')} reached, ` +
      `${all.filter((t) => t.outcome === 'undecided').length} undecided`;
    byId('targets-table').append(
      make('thead', {}, make('tr', {}, make('th', { class: 'name' }, 'target'), make('th', { class: 'name' }, 'ratio'), ...['limits', 'wanted', ''].map((n) => make('th', {}, n)))),
      make('tbody', {}, ...all.map((t) => {
        return make('tr', {}, make('td', { class: 'name' }, t.text), make('td', { class: 'name bars' }, claimBar(t)),
          make('td', {}, claimRatio(t)), make('td', {}, claimWanted(t)), make('td', { class: 'name' }, words[t.outcome]));
      })));
  }

  function rearm() {
    const series = data.series.filter((s) => s.test === 'rearm');
    const counts = [...new Set(series.map((s) => s.timers))].sort((a, b) => a - b);
    if (counts.length === 0) return byId('rearm').remove();
    const shown = names.filter((name) => series.some((s) => s.structure === name));
    const isOn = (name) => six.includes(name) || shown.length <= six.length;
    const costs = known(series.map((s) => phaseOf(s, 'set-then-cancel').cpu_ns)).filter((ns) => ns > 0);
    const top = 2 * Math.max(1, ...costs);
    const bottom = 10 ** Math.floor(Math.log10(Math.min(top, ...costs)));
    const plots = settings.loads.map((load) => {
      const lines = shown.map((name) => {
        const all = counts.map((n) => series.find((s) => s.timers === n && s.load === load && s.structure === name));
        return { label: name, name, color: colorOf(name), strong: name === 'wheel', hidden: !isOn(name), dashed: !six.includes(name),
          values: all.map((s) => (s ? phaseOf(s, 'set-then-cancel').cpu_ns : null)),
          ranges: all.map((s) => {
            const samples = s ? s.samples.filter(Boolean).map((x) => x['set-then-cancel'].cpu_ns / x['set-then-cancel'].operations) : [];
            return samples.length > 1 ? [Math.min(...samples), Math.max(...samples)] : null;
          }) };
      });
      return plotInto(byId('rearm-plots'), `${loads[load][0].toUpperCase()}${loads[load].slice(1)}`, counts, lines,
        { top, bottom, unit: ' ns', digits: 1, label: 'ns a pair', xName: 'timer', height: 320 });
    });
    switches('rearm-legend', [...shown].sort((a, b) => isOn(b) - isOn(a)).map((name) => [name, colorOf(name), isOn(name)]), plots);
  }

  function matrix() {
    const columns = rows.flatMap((row) => row.phases.map((p, i) => ({ row, phase: p.phase, first: i === 0 })));
    const value = (column, name) => (phaseOf(find(column.row.text, 'alone', name), column.phase) || { cpu_ns: null }).cpu_ns;
    if (columns.every((column) => known(names.map((name) => value(column, name))).length === 0)) return byId('matrix').remove();
    byId('matrix-legend').append(...heats.map(([, text], i) => make('span', {}, make('i', { class: `patch h${i}` }), text)));
    const cell = (column, name) => {
      const ns = value(column, name);
      const side = column.first ? ' first' : '';
      const best = Math.min(...known(names.map((other) => value(column, other))));
      if (ns === null) return make('td', { class: `none${side}`, title: 'not measured' }, '–');
      const ratio = ns / Math.max(best, 1e-3);
      return make('td', { class: `h${heat(ratio)}${ns === best ? ' best' : ''}${side}`, title: `${name}, ${column.row.text}, ${column.phase}: ${figure(ns)} ns, ${number(ratio, 2)}× the best` }, figure(ns));
    };
    byId('matrix-table').append(
      make('thead', {},
        make('tr', {}, make('th', { class: 'name' }), ...rows.map((row) => make('th', { colspan: row.phases.length, class: 'group first' }, row.text))),
        make('tr', {}, make('th', { class: 'name' }), ...columns.map((c) => make('th', { class: c.first ? 'first' : '' }, c.phase === 'set-then-cancel' ? 'a pair' : c.phase)))),
      make('tbody', {}, ...names.map((name) => make('tr', { class: name.startsWith('wheel') || name === 'queue' ? 'ours' : '' },
        make('td', { class: 'name', title: sources.get(name) }, name), ...columns.map((column) => cell(column, name))))));
  }

  // A table for each row: alone, and beside each load.
  function loadTables() {
    const beside = settings.loads.filter((load) => load !== 'alone');
    if (beside.length === 0 || rows.length === 0) return byId('loads').remove();
    byId('loads-lead').textContent = `Nanoseconds of CPU time per timer (a pair where timers are re-armed) with ${plural(settings.background, 'thread')} beside the timers', and how often per thousand the timers' thread slept. The threads take turns on the CPUs, which CPU time leaves out and the wall's clock does not.`;
    const card = (row) => {
      const phase = sumOf(row);
      const line = (name) => {
        const alone = phaseOf(find(row.text, 'alone', name), phase);
        const cells = beside.flatMap((load) => {
          const p = phaseOf(find(row.text, load, name), phase);
          if (!p || p.cpu_ns === null) return [make('td', { class: 'none' }, '–'), make('td', {}), make('td', {}), make('td', {})];
          return [make('td', {}, figure(p.cpu_ns)), make('td', {}, p.to_alone === null ? '' : `× ${number(p.to_alone, 2)}`), make('td', {}, number(p.sleeps_per_thousand, 2)), make('td', {}, figure(p.wall_ns))];
        });
        return make('tr', {}, make('td', { class: 'name', title: sources.get(name) }, name), make('td', {}, alone && alone.cpu_ns !== null ? figure(alone.cpu_ns) : '–'), ...cells);
      };
      const shown = names.filter((name) => settings.loads.some((load) => find(row.text, load, name)));
      return make('div', { class: 'card' }, make('h3', {}, row.text), make('div', { class: 'scroll' }, make('table', {},
        make('thead', {}, make('tr', {}, make('th', { class: 'name' }), make('th', {}, 'alone'), ...beside.flatMap((load) => [load, '', 'sleeps', 'wall'].map((n) => make('th', {}, n))))),
        make('tbody', {}, ...shown.map(line)))));
    };
    byId('loads-tables').append(...rows.map(card));
  }

  function figures() {
    const header = make('tr', {}, ...['row', 'load', 'structure', 'phase'].map((n) => make('th', { class: 'name' }, n)),
      ...['CPU ns', 'spread', 'wall ns', 'sleeps ‰', 'waits ‰', 'to base', 'to alone', 'peak'].map((n) => make('th', {}, n)));
    const lines = data.series.flatMap((s) => s.phases.map((p) => {
      const samples = s.samples.filter(Boolean);
      const texts = s.failure ? [s.failure, '', '', '', '', '', '', ''] : [
        ...[p.cpu_ns].map((v) => (v === null ? '–' : figure(v))), `${number(100 * p.spread, 0)}%`, p.wall_ns === null ? '–' : figure(p.wall_ns),
        number(p.sleeps_per_thousand, 2), number(p.waits_per_thousand, 2), number(p.to_base, 2), number(p.to_alone, 2),
        megabytes(samples.length ? Math.max(...samples.map((x) => x.peak_rss_bytes)) : null)];
      return make('tr', {}, ...[s.text, s.load, s.structure, p.phase].map((t) => make('td', { class: 'name' }, t)), ...texts.map((t) => make('td', {}, t)));
    }));
    byId('figures').append(make('thead', {}, header), make('tbody', {}, ...lines));
  }

  page.frame(data, [`${plural(settings.background, 'thread')} of load`, `medians of ${plural(settings.repeat, 'set')}`], 'freehold timers');
  targets();
  rearm();
  matrix();
  loadTables();
  figures();
  page.finish();
})();
