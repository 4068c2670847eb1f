// SPDX-License-Identifier: MIT
// Draws the page of freehold doctor --memory from its JSON (docs/memory.md).
'use strict';
(() => {
  const { data, make, byId, number, legend, plotInto, plural, percent, cell, name, heads, tile, figure, fileOf, sortable } = page;
  const { verdict, recording } = data;
  const palette = ['--c1', '--c0', '--c3', '--c2', '--c4', '--c5', '--c7', '--c6'];

  function bytes(value) {
    const mebibytes = value / 1048576;
    return `${number(mebibytes, Math.abs(mebibytes) < 9.95 ? 1 : 0)} MiB`;
  }
  const share = (value) => (verdict.mean_bytes > 0 ? value / verdict.mean_bytes : 0);

  // ---- verdict

  function answer() {
    const kinds = { undecided: ['Undecided', 'undecided'], little: ['Little', 'reproduced'] };
    const [text, look] = kinds[verdict.cause] || (verdict.blames_allocator ? ['The allocator', 'refuted'] : ['Not the allocator', 'reproduced']);
    document.title = `Freehold: memory of ${fileOf(data.program.file)}`;
    document.querySelector('h1').textContent = `Why does ${fileOf(data.program.file)} take so much memory?`;
    byId('pill').textContent = text;
    byId('pill').classList.add(look);
    byId('headline').textContent = verdict.headline;
    if (verdict.advice) byId('advice').append(make('strong', {}, 'Do: '), verdict.advice);
    else byId('advice').remove();
    const live = verdict.parts.find((part) => part.part === 'live');
    const best = data.fixes.filter((fix) => fix.helps).sort((a, b) => b.saved_bytes.value - a.saved_bytes.value)[0];
    byId('tiles').append(tile(bytes(verdict.mean_bytes), 'resident, mean over the run'));
    if (recording && live) byId('tiles').append(tile(percent(share(live.mean_bytes)), 'of it: live data'));
    if (best) byId('tiles').append(tile(bytes(best.saved_bytes.value), `less with ${best.name}`, `${bytes(best.saved_bytes.low)} to ${bytes(best.saved_bytes.high)}`));
  }

  const shown = verdict.parts.filter((part) => Math.max(part.mean_bytes, part.at_peak_bytes) >= 1048576 / 20).sort((a, b) => b.mean_bytes - a.mean_bytes);
  const colorOf = (i) => palette[Math.min(i, palette.length - 1)];
  function parts() {
    if (shown.length === 0) {
      byId('parts').remove();
      byId('table').remove();
      return;
    }
    shown.forEach((part, i) => byId('parts-bar').append(make('div', { style: `width: ${100 * share(part.mean_bytes)}%; background: var(${colorOf(i)})`, title: `${part.text}: ${bytes(part.mean_bytes)}` })));
    legend('parts-legend', shown.map((part, i) => [`${part.text}: ${percent(share(part.mean_bytes))}`, colorOf(i)]));
    byId('parts-table').append(heads(['what', 'share', 'mean', 'at the resident peak'], [0]), make('tbody', {}, ...shown.map((part) =>
      make('tr', {}, name(part.text), cell(percent(share(part.mean_bytes))), cell(bytes(part.mean_bytes)), cell(bytes(part.at_peak_bytes))))));
    if (verdict.untouched_bytes >= 1048576) byId('untouched').textContent = `Allocated and never used, so not resident: ${bytes(verdict.untouched_bytes)}.`;
  }

  // ---- what was recorded

  function history() {
    if (!recording || recording.history.length < 2) return byId('history').remove();
    const points = recording.history;
    const x = points.map((point) => point.at_s);
    const lines = [{ label: 'resident', color: '--c1', values: points.map((point) => point.resident_bytes / 1048576), noPoints: true },
      { label: 'live data', color: '--c0', values: points.map((point) => point.live_bytes / 1048576), noPoints: true }];
    byId('history-lead').textContent = `Live data is at most ${bytes(recording.peak_live_bytes)}, and ${bytes(recording.end_live_bytes)} at the end. Where more is resident, it is held beside live data; where less, live data was not touched yet.`;
    legend('history-legend', lines.map((line) => [line.label, line.color]));
    plotInto(byId('history-plot'), 'Memory', x, lines, { top: 1.1 * Math.max(1, ...lines.flatMap((line) => line.values)), unit: ' MiB', digits: 1, label: 'MiB', xName: 'second', height: 280, continuous: true });
  }

  // The site; its stack unfolds.
  function where(site) {
    const folded = make('details', { class: 'place' }, make('summary', {}, make('b', {}, site.site)));
    if (site.via) folded.append(make('p', { class: 'muted small' }, 'calls ', make('code', {}, site.via)));
    folded.append(make('ol', { class: 'stack' }, ...site.stack.map((frame) => make('li', {}, make('code', {}, frame)))));
    return make('td', { class: 'name where' }, folded);
  }
  const habit = (site) => (site.grows ? 'never freed, grows all along' : site.never_freed ? 'never freed' : '');
  function sites() {
    if (!recording || recording.sites.length === 0) return byId('sites').remove();
    const peak = recording.peak_live_bytes;
    byId('sites-lead').textContent = `When most was live, ${bytes(peak)}, which may be another moment than the resident peak. Press a title to sort, a site to see who calls it.`;
    const shareOf = (site) => (peak > 0 ? site.at_peak_bytes / peak : 0);
    sortable(byId('sites-table'), [
      ['where', (site) => site.site, where],
      ['share', shareOf, (site) => make('td', {}, percent(shareOf(site)), make('div', { class: 'bar' }, make('div', { style: `width: ${Math.min(100, 100 * shareOf(site))}%; background: var(--c0)` })))],
      ['at the live peak', (site) => site.at_peak_bytes, (site) => cell(bytes(site.at_peak_bytes))],
      ['mean', (site) => site.mean_bytes, (site) => cell(bytes(site.mean_bytes))],
      ['freed', habit, (site) => name(habit(site))],
    ], [...recording.sites], 1, byId('sites-more'));
  }

  // ---- what was tried

  function fixes() {
    if (data.fixes.length === 0) return byId('fixes').remove();
    const isKnown = (fix) => !fix.failed && fix.saved_bytes !== null;
    const order = (fix) => (isKnown(fix) ? fix.saved_bytes.value : -Number.MAX_VALUE);
    const rows = [...data.fixes].sort((a, b) => Number(b.helps) - Number(a.helps) || order(b) - order(a));
    const top = Math.max(1, verdict.mean_bytes);
    byId('fixes-table').append(heads(['with', 'what became of it', ''], [0, 1, 2]), make('tbody', {}, ...rows.map((fix) => make('tr', { class: fix.helps ? 'ours' : '' },
      name(fix.name), name(fix.failed ? 'failed' : fix.text),
      make('td', { class: 'name bars' }, !isKnown(fix) || fix.saved_bytes.value <= 0 ? '' : page.ratioBar(fix.saved_bytes.value, Math.max(0, fix.saved_bytes.low), fix.saved_bytes.high, 0, fix.helps, top))))));
  }

  function runs() {
    const rows = data.trials.flatMap((one) => (one.failure ? [make('tr', {}, name(one.name), cell(one.failure, { colspan: '4', class: 'name' }))]
      : one.trials.map((trial) => make('tr', {}, name(one.name), cell(bytes(trial.mean_bytes)), cell(bytes(trial.peak_bytes)), cell(bytes(trial.end_bytes)), cell(`${figure(trial.wall_s)} s`)))));
    byId('runs-summary').textContent = plural(rows.length, 'run');
    byId('runs-table').append(heads(['with', 'mean', 'resident peak', 'at the end', 'time'], [0]), make('tbody', {}, ...rows));
  }

  page.frame(data, [], 'freehold doctor --memory');
  answer();
  parts();
  history();
  sites();
  fixes();
  runs();
  page.finish();
})();
