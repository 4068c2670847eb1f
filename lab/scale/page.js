// SPDX-License-Identifier: MIT
// Draws the page of freehold scale from its JSON.
'use strict';
(() => {
  const { data, make, byId, number, megabytes, legend, plotInto, plural, claimBar, claimRatio, claimWanted } = page;
  const { settings } = data;
  const workloads = settings.tests.filter((t) => ['compute', 'allocate', 'mixed', 'memory', 'own-memory', 'object', 'scoped', 'reserved', 'worker-heap', 'locked'].includes(t));
  const blockTests = settings.tests.filter((t) => ['isolation', 'handover'].includes(t));
  const allocators = settings.subjects.filter((s) => s.source === 'malloc').map((s) => s.name);
  const workloadColor = { compute: '--c0', allocate: '--c1', mixed: '--c2', memory: '--c3', 'own-memory': '--c6', object: '--c5', scoped: '--c2', reserved: '--c7', 'worker-heap': '--c0', locked: '--c4' };
  const subjectColor = new Map([['system', '--c1'], ['freehold', '--c3'], ['owner-article', '--c4'], ['owner-mutex', '--c0'], ['owner-lock-free', '--c2']]);
  settings.subjects.filter((s) => !subjectColor.has(s.name)).forEach((s, i) => subjectColor.set(s.name, `--c${4 + (i % 4)}`));

  const byKey = new Map(data.series.map((s) => [key(s.test, s.mode, s.subject, s.workers), s]));
  function key(...parts) { return JSON.stringify(parts); }
  function find(test, mode, subject, workers) { return byKey.get(key(test, mode, subject, workers)); }

  function verdict() {
    const { claims, paragraph } = data.verdict;
    if (claims.length === 0 || claims.every((c) => c.outcome === 'not measured')) {
      byId('verdict').append(make('p', { class: 'card' }, paragraph));
      return;
    }
    const sign = { reproduced: '✓', refuted: '✗', undecided: '?', 'not measured': '–' };
    byId('verdict').append(make('div', { class: 'claims' }, ...claims.map((claim) => make('article', { class: 'card claim' },
      make('span', { class: `pill ${claim.outcome.replace(' ', '-')}` }, `${sign[claim.outcome]} ${claim.outcome}`),
      make('h3', {}, claim.statement[0].toUpperCase() + claim.statement.slice(1)),
      make('p', {}, claim.figures === '' ? 'Not part of this run.' : `${claim.figures[0].toUpperCase()}${claim.figures.slice(1)}.`),
      claimBar(claim), claim.ratio === null ? '' : make('p', {}, `Ratio ${claimRatio(claim)}; reproduced if ${claimWanted(claim)}.`)))));
  }

  const measuredTimes = (series) => series.samples.filter(Boolean).map((s) => s.elapsed_ns * 1e-9);

  function speedLine(test, mode, subject) {
    const base = find(test, mode, subject, settings.workers[0]);
    const all = settings.workers.map((n) => find(test, mode, subject, n));
    return {
      label: test, color: workloadColor[test], values: all.map((s) => (s ? s.speed : null)),
      ranges: all.map((s) => {
        const times = s && base && base.median_seconds ? measuredTimes(s) : [];
        return times.length > 1 ? [base.median_seconds / Math.max(...times), base.median_seconds / Math.min(...times)] : null;
      }),
    };
  }

  function diagrams() {
    if (workloads.length === 0) return byId('diagrams').remove();
    const ideal = { label: 'allowed', dashed: true, values: settings.ideal_speed };
    const rows = allocators.map((subject) => [subject,
      settings.modes.map((mode) => [mode, [ideal, ...workloads.map((test) => speedLine(test, mode, subject))]])]);
    const all = rows.flatMap(([, modes]) => modes.flatMap(([, lines]) => lines.flatMap((line) => [...line.values, ...(line.ranges || []).flat()])));
    const top = 1.1 * Math.max(1, ...all.filter((value) => value !== null));
    legend('workload-legend', workloads.map((test) => [test, workloadColor[test]]), 'limit of the CPUs');
    for (const [subject, modes] of rows) {
      const grid = make('div', { class: 'plots' });
      byId('diagram-rows').append(make('div', { class: 'row' }, make('h3', {}, subject), grid));
      for (const [mode, lines] of modes) {
        plotInto(grid, mode === 'pool' ? 'Threads that call a pool' : mode === 'spawn' ? 'Threads that start a process for each iteration' : mode[0].toUpperCase() + mode.slice(1), settings.workers, lines,
          { top, unit: '×', digits: 2, label: 'times as fast as one', xName: 'worker' });
      }
    }
  }

  function compared() {
    const tests = workloads.filter((test) => test === 'allocate' || test === 'mixed');
    if (tests.length === 0 || allocators.length < 2 || !settings.modes.includes('threads')) return byId('compared').remove();
    legend('allocator-legend', allocators.map((name) => [name, subjectColor.get(name)]));
    for (const test of tests) {
      const lines = allocators.map((subject) => {
        const all = settings.workers.map((n) => find(test, 'threads', subject, n));
        const milliseconds = (s) => (s && s.median_seconds !== null ? 1e3 * s.median_seconds : null);
        return {
          label: subject, color: subjectColor.get(subject), values: all.map(milliseconds),
          ranges: all.map((s) => {
            const times = s ? measuredTimes(s) : [];
            return times.length > 1 ? [1e3 * Math.min(...times), 1e3 * Math.max(...times)] : null;
          }),
        };
      });
      const values = lines.flatMap((line) => [...line.values, ...line.ranges.flat()]).filter((value) => value !== null);
      plotInto(byId('compared-plots'), test[0].toUpperCase() + test.slice(1), settings.workers, lines,
        { top: 1.1 * Math.max(1e-3, ...values), unit: ' ms', digits: 1, label: 'milliseconds', xName: 'worker' });
    }
  }

  // One table for each test: a row for each subject, a number with a bar for each number of threads.
  function blockTable(test) {
    const series = data.series.filter((s) => s.test === test);
    const counts = [...new Set(series.map((s) => s.workers))].sort((a, b) => a - b);
    const greatest = Math.max(1e-9, ...series.map((s) => s.ns_per_operation || 0));
    const header = make('tr', {}, make('th', { class: 'name' }, 'threads'), ...counts.map((n) => make('th', {}, String(n))), make('th', {}, 'peak'));
    const rows = settings.subjects.map(({ name }) => {
      const cells = counts.map((n) => find(test, 'threads', name, n));
      const peaks = cells.map((s) => (s ? s.peak_rss_bytes : null)).filter((peak) => peak !== null);
      return make('tr', {}, make('td', { class: 'name' }, name), ...cells.map((s) => {
        const value = s ? s.ns_per_operation : null;
        const bar = make('div', { class: 'bar' }, make('div', { style: `width: ${(100 * (value || 0)) / greatest}%; background: var(${subjectColor.get(name)})` }));
        return make('td', {}, number(value, 1), bar);
      }), make('td', {}, megabytes(peaks.length ? Math.max(...peaks) : null)));
    });
    return make('div', { class: 'card' }, make('h3', {}, test === 'isolation' ? 'In isolation' : 'Handed over'),
      make('div', { class: 'scroll' }, make('table', {}, make('thead', {}, header), make('tbody', {}, ...rows))));
  }

  function blocks() {
    const tests = blockTests.filter((test) => data.series.some((s) => s.test === test));
    if (tests.length === 0) return byId('blocks').remove();
    byId('block-tables').append(...tests.map(blockTable));
  }

  function figures() {
    const names = ['test', 'mode', 'allocator'];
    const numbers = ['workers', 'median ms', 'spread', 'speed', 'ns per operation', 'CPU ms', 'peak'];
    const header = make('tr', {}, ...names.map((n) => make('th', { class: 'name' }, n)), ...numbers.map((n) => make('th', {}, n)));
    const rows = data.series.map((s) => {
      const texts = s.failure ? [String(s.workers), s.failure, '', '', '', '', ''] : [
        String(s.workers), number(s.median_seconds === null ? null : 1e3 * s.median_seconds, 1), `${number(100 * s.spread, 0)}%`,
        number(s.speed, 2), `${number(s.ns_per_operation, 2)} / ${s.operation}`,
        number(s.samples.some(Boolean) ? Math.max(...s.samples.filter(Boolean).map((x) => x.cpu_ns)) / 1e6 : null, 1), megabytes(s.peak_rss_bytes)];
      return make('tr', {}, ...[s.test, s.mode, s.subject].map((t) => make('td', { class: 'name' }, t)), ...texts.map((t) => make('td', {}, t)));
    });
    byId('figures').append(make('thead', {}, header), make('tbody', {}, ...rows));
  }

  page.frame(data, [`${settings.iterations} iterations shared, medians of ${plural(settings.repeat, 'set')}`], 'freehold scale');
  verdict();
  diagrams();
  compared();
  blocks();
  figures();
  page.finish();
})();
