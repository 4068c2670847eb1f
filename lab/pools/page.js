// SPDX-License-Identifier: MIT
// Draws the page of freehold pools from its JSON.
'use strict';
(() => {
  const { data, make, byId, number, megabytes, legend, plotInto, plural, known, figure, heats, heat, ratioBar, heads, name, cell } = page;
  const { settings, ours } = data;
  const tests = { short: 'Short life', long: 'Long life', single: 'One thread', random: 'Random', ring: 'Ring', pair: 'Pair', alike: 'Alike lives', mixed: 'Mixed lives' };
  const palette = ['--c0', '--c1', '--c2', '--c4', '--c5', '--c6', '--c7'];
  const plain = data.series.filter((s) => s.test !== 'crc');
  const crc = data.series.filter((s) => s.test === 'crc');
  const colorOf = (name, i) => (name === ours ? '--c3' : palette[i % palette.length]);
  const isBaseline = new Set(settings.pools.filter((p) => p.kind === 'baseline').map((p) => p.name));

  function compared() {
    const rows = data.comparisons;
    if (rows.length === 0) return byId('compared').remove();
    const good = rows.filter((row) => row.ratio <= 1.05).length;
    byId('compared-title').textContent = `BestPool: the fastest or within 5% of it in ${good} of ${plural(rows.length, 'row')}`;
    const width = Math.max(1.5, ...rows.map((row) => Math.min(row.greatest_ratio, 3)));
    const bar = (row) => ratioBar(row.ratio, row.least_ratio, row.greatest_ratio, 1, row.ratio <= 1.05, width);
    byId('compared-table').append(
      make('thead', {}, make('tr', {}, make('th', { class: 'name' }, 'row'), make('th', { class: 'name' }, 'ratio'), make('th', {}, ''),
        make('th', {}, 'BestPool, ns'), make('th', {}, 'best other, ns'), make('th', { class: 'name' }, 'which'))),
      make('tbody', {}, ...rows.map((row) => make('tr', {}, make('td', { class: 'name' }, row.text), make('td', { class: 'name bars' }, bar(row)),
        make('td', {}, number(row.ratio, 2)), make('td', {}, figure(row.ours)), make('td', {}, figure(row.best)), make('td', { class: 'name' }, row.pool)))));
  }

  function matrix() {
    if (plain.length === 0) return byId('matrix').remove();
    const rows = [...new Map(plain.map((s) => [s.text, s])).values()];
    const best = new Map(rows.map((row) => [row.text,
      Math.min(...known(plain.filter((s) => s.text === row.text && !isBaseline.has(s.pool)).map((s) => s.ns)))]));
    const groups = [];
    for (const row of rows) {
      if (groups.length && groups[groups.length - 1].test === row.test) groups[groups.length - 1].rows.push(row);
      else groups.push({ test: row.test, rows: [row] });
    }
    byId('matrix-legend').append(...heats.map(([, text], i) => make('span', {}, make('i', { class: `patch h${i}` }), text)));
    const cell = (pool, row, first) => {
      const series = plain.find((s) => s.text === row.text && s.pool === pool);
      const side = first ? ' first' : '';
      if (!series || series.ns === null) return make('td', { class: `none${side}`, title: (series && series.failure) || 'not part of this row' }, '–');
      const ratio = series.ns / best.get(row.text);
      const classes = isBaseline.has(pool) ? 'baseline' : `h${heat(ratio)}${series.ns === best.get(row.text) ? ' best' : ''}`;
      return make('td', { class: classes + side, title: `${pool}, ${row.text}: ${figure(series.ns)} ns, ${number(ratio, 2)}× the best, sets differ by ${number(100 * series.spread, 0)}%` },
        `${series.shortened ? '~' : ''}${figure(series.ns)}`);
    };
    byId('matrix-table').append(
      make('thead', {},
        make('tr', {}, make('th', { class: 'name' }), ...groups.map((g) => make('th', { colspan: g.rows.length, class: 'group first' }, tests[g.test]))),
        make('tr', {}, make('th', { class: 'name' }), ...groups.flatMap((g) => g.rows.map((row, i) => make('th', { class: i === 0 ? 'first' : '' }, ['short', 'long', 'single'].includes(row.test) ? row.context : `${row.threads} thr.`))))),
      make('tbody', {}, ...settings.pools.filter((p) => plain.some((s) => s.pool === p.name)).map((p) => make('tr', { class: p.name === ours ? 'ours' : '' },
        make('td', { class: 'name', title: p.source }, p.name), ...groups.flatMap((g) => g.rows.map((row, i) => cell(p.name, row, i === 0)))))));
  }

  function memory() {
    const measured = data.footprints.filter((one) => one.alike !== null || one.mixed !== null);
    if (measured.length === 0) return byId('memory').remove();
    byId('memory-table').append(heads(['pool', 'bytes', 'alike lives', 'mixed lives']), make('tbody', {}, ...measured.map((one) => make('tr', { class: one.pool === ours ? 'ours' : '' },
      name(one.pool), ...[one.bookkeeping_bytes, one.alike, one.mixed].map((value) => cell(value === null ? '–' : figure(value)))))));
  }

  // Article 1's figures: against the number of pools, a line for each spread.
  function spreads() {
    if (crc.length === 0) return byId('crc').remove();
    const spread = settings.pools.filter((p) => p.distributed && crc.some((s) => s.pool === p.name)).map((p) => p.name);
    const find = (pool, threads, shards, counted) => crc.find((s) => s.pool === pool && s.threads === threads && s.shards === shards && s.counted === counted);
    const microseconds = (s) => (s && s.ns !== null ? 1e-3 * s.ns : null);
    const percent = (s) => (s && s.contention !== null ? 100 * s.contention : null);
    const entries = spread.map((name, i) => [name, colorOf(name, i)]);
    const alone = [ours, ...isBaseline].filter((name) => crc.some((s) => s.pool === name));
    if (spread.length > 0) {
      legend('crc-legend', [...entries, ...(alone.includes(ours) ? [['BestPool, one pool', '--c3']] : [])], alone.some((name) => isBaseline.has(name)) ? 'the work without any pool' : '');
      const times = crc.filter((s) => !s.counted && (spread.includes(s.pool) || alone.includes(s.pool))).map(microseconds);
      const top = 1.1 * Math.max(1e-3, ...known(times));
      const most = 1.1 * Math.max(1, ...known(crc.filter((s) => s.counted && spread.includes(s.pool)).map(percent)));
      for (const threads of settings.crc_threads) {
        const line = (name, color, counted, value) => {
          const all = settings.crc_pools.map((n) => find(name, threads, n, counted));
          const scaled = (s) => s.samples.filter(Boolean).map((x) => (1e-3 * x.elapsed_ns) / x.operations);
          return { label: name, color, values: all.map(value),
            ranges: counted ? undefined : all.map((s) => (s && s.samples.filter(Boolean).length > 1 ? [Math.min(...scaled(s)), Math.max(...scaled(s))] : null)) };
        };
        const level = (name) => {
          const value = microseconds(find(name, threads, 0, false));
          return { label: name, color: isBaseline.has(name) ? undefined : '--c3', dashed: isBaseline.has(name), values: settings.crc_pools.map(() => value) };
        };
        const grid = make('div', { class: 'plots' });
        byId('crc-rows').append(make('div', { class: 'row' }, make('h3', {}, plural(threads, 'thread')), grid));
        plotInto(grid, 'Time', settings.crc_pools, [...entries.map(([name, color]) => line(name, color, false, microseconds)), ...alone.map(level)],
          { top, unit: ' µs', digits: 3, label: 'microseconds per buffer', xName: 'pool' });
        plotInto(grid, 'Contention', settings.crc_pools, entries.map(([name, color]) => line(name, color, true, percent)),
          { top: most, unit: '%', digits: 1, label: '% of the iterations', xName: 'pool' });
      }
    }
    const single = settings.pools.filter((p) => !p.distributed && crc.some((s) => s.pool === p.name));
    if (single.length === 0) return byId('crc-single').remove();
    byId('crc-single').append(make('table', {},
      make('thead', {}, make('tr', {}, make('th', { class: 'name' }, 'not distributed'), ...settings.crc_threads.flatMap((n) => [make('th', {}, `${n} threads, µs`), make('th', {}, 'contention')]))),
      make('tbody', {}, ...single.map((p) => make('tr', { class: p.name === ours ? 'ours' : '' }, make('td', { class: 'name', title: p.source }, p.name), ...settings.crc_threads.flatMap((n) => {
        const share = percent(find(p.name, n, 0, true));
        return [make('td', {}, number(microseconds(find(p.name, n, 0, false)), 3)), make('td', {}, share === null ? '–' : `${number(share, 1)}%`)];
      }))))));
  }

  function simulated() {
    const { cores, series } = data.simulated;
    if (series.length === 0) return byId('simulated').remove();
    const least = 0.01;  // where "none" is drawn
    const names = [...new Set(series.map((s) => s.pool))];
    legend('simulated-legend', names.map((name, i) => [name, colorOf(name, i)]));
    const top = 2 * Math.max(1, ...series.flatMap((s) => s.misses));
    const title = { own: 'Each core releases its own slots', exchange: 'The next core releases them', 'one-way': 'Every second core acquires, the next one releases', long: 'Each acquires 256, then releases them' };
    const turn = (quantum) => (quantum === 1 ? 'In step' : `Turns of ${quantum} accesses`);
    for (const workload of [...new Set(series.map((s) => s.workload))]) {
      const grid = make('div', { class: 'plots' });
      byId('simulated-rows').append(make('div', { class: 'row' }, make('h3', {}, title[workload]), grid));
      for (const quantum of [...new Set(series.filter((s) => s.workload === workload).map((s) => s.quantum))]) {
        const lines = names.map((name, i) => {
          const misses = series.find((s) => s.pool === name && s.workload === workload && s.quantum === quantum).misses;
          return { label: name, name, color: colorOf(name, i), strong: name === ours, tips: misses, values: misses.map((value) => Math.max(value, least)) };
        });
        plotInto(grid, turn(quantum), cores, lines, { top, bottom: least, bottomText: '0', unit: '', digits: 2, label: 'misses per pair', xName: 'core', height: 320 });
      }
    }
  }

  function figures() {
    if (data.series.length === 0) return byId('every').remove();
    const header = make('tr', {}, ...['row', 'pool'].map((n) => make('th', { class: 'name' }, n)),
      ...['ns', 'spread', 'pairs', 'contention', 'CPU ms', 'peak'].map((n) => make('th', {}, n)));
    const rows = data.series.map((s) => {
      const samples = s.samples.filter(Boolean);
      const name = `${s.pool}${s.shards ? ` × ${s.shards}` : ''}${s.counted ? ', counted' : ''}`;
      const texts = s.failure ? [s.failure, '', '', '', '', ''] : [
        s.ns === null ? '–' : figure(s.ns), `${number(100 * s.spread, 0)}%`, samples.length ? String(Math.min(...samples.map((x) => x.operations))) : '–',
        s.contention === null ? '–' : `${number(100 * s.contention, 2)}%`, samples.length ? number(Math.max(...samples.map((x) => x.cpu_ns)) / 1e6, 1) : '–',
        megabytes(samples.length ? Math.max(...samples.map((x) => x.peak_rss_bytes)) : null)];
      return make('tr', {}, ...[s.text, name].map((t) => make('td', { class: 'name' }, t)), ...texts.map((t) => make('td', {}, t)));
    });
    byId('figures').append(make('thead', {}, header), make('tbody', {}, ...rows));
  }

  page.frame(data, data.series.length ? [`${plural(settings.threads, 'thread')}${settings.one_cpu ? ' on one CPU' : ''}, ${settings.operations.toLocaleString('en')} operations each${settings.whole ? '' : ` but no longer than ${settings.milliseconds} ms`}, slots of ${settings.slot_bytes} bytes`,
    `medians of ${plural(settings.repeat, 'set')}`] : [], 'freehold pools');
  compared();
  matrix();
  memory();
  spreads();
  simulated();
  figures();
  page.finish();
})();
