// SPDX-License-Identifier: MIT
// Draws the page of freehold doctor from its JSON (docs/doctor-schema.md).
'use strict';
(() => {
  const { data, make, byId, number, megabytes, legend, plotInto, plural, percent, cell, name, heads, known, figure, count, bytes, sortable, frameLine } = page;
  const { verdict, experiment, recording } = data;
  const variants = experiment.variants;
  const palette = ['--c0', '--c2', '--c4', '--c5', '--c7', '--c6'];
  const peers = variants.map((v, i) => i).filter((i) => !['none', 'freehold'].includes(variants[i].treatment));
  const colorOf = (i) => ({ none: '--c1', freehold: '--c3' })[variants[i].treatment] || palette[peers.indexOf(i) % palette.length];

  // Limits of bins, which are powers of ten: "10 µs".
  const power = (value) => (value >= 0.9995 ? `${number(value, 0)} s` : value >= 0.9995e-3 ? `${number(1e3 * value, 0)} ms` : value >= 0.9995e-6 ? `${number(1e6 * value, 0)} µs` : `${number(1e9 * value, 0)} ns`);
  const seconds = (value) => (value === null ? '–' : value >= 0.9995 ? `${figure(value)} s` : value >= 0.9995e-3 ? `${figure(1e3 * value)} ms`
    : value >= 0.9995e-6 ? `${figure(1e6 * value)} µs` : `${number(1e9 * value, 0)} ns`);

  // As the words do: no more digits than the range allows.
  const isRange = (estimate) => estimate.high > estimate.low;
  function timesOf(estimate) {
    const width = isRange(estimate) ? estimate.high - estimate.low : 0.15;
    const digits = width >= 3 && estimate.low >= 1.5 ? 0 : width >= 0.15 ? 1 : 2;
    return (value) => `${number(value, digits)}×`;
  }
  function stepOf(estimate) {
    const width = 100 * (estimate.high - estimate.low);
    return width >= 25 ? 10 : width >= 12 ? 5 : 1;
  }
  function percentOf(estimate) {
    const step = stepOf(estimate);
    return (value) => (step === 1 ? percent(value) : `${step * Math.round((100 * value) / step)}%`);
  }
  const isOpen = verdict.cause === 'undecided'; // nothing may look decided then
  const rangeOf = (estimate, text) => (isRange(estimate) ? `${text(estimate.low)} to ${text(estimate.high)}` : '');

  // ---- verdict

  function answer() {
    const kinds = { none: ['Not the allocator', 'reproduced'], undecided: ['Undecided', 'undecided'], mixed: ['Partly the allocator', 'refuted'] };
    const undecided = verdict.headline.startsWith('No verdict') ? ['No verdict', 'undecided'] : null;
    const [text, look] = undecided || kinds[verdict.cause] || (verdict.blames_allocator ? ['The allocator', 'refuted'] : ['Not the allocator', 'reproduced']);
    document.title = `Freehold: ${data.program.name}`;
    document.querySelector('h1').textContent = data.program.example ? 'Is the allocator why the example does not scale?' : `Is the allocator why ${data.program.name} does not scale?`;
    byId('pill').textContent = text;
    byId('pill').classList.add(look);
    byId('headline').textContent = verdict.headline;
    byId('because').append(...verdict.because.map((sentence) => make('li', {}, sentence)));
    if (verdict.bound) byId('because').after(make('p', {}, verdict.bound));
    const { brings, advice } = verdict;
    for (const [id, label, sentence] of [['brings', 'Brings: ', brings], ['advice', 'Do: ', advice]]) {
      if (sentence) byId(id).append(make('strong', {}, label), sentence);
      else byId(id).remove();
    }
    tiles();
    parts();
  }

  function tiles() {
    const shown = [];
    const tile = (estimate, text, label, behind = '') => shown.push(make('div', { class: 'tile' }, make('b', {}, text(estimate.value) + behind), make('span', {}, label), make('i', {}, rangeOf(estimate, text))));
    const { speedup, ideal_speedup: ideal, allocator_share: share } = verdict;
    if (speedup.value > 0) tile(speedup, timesOf(speedup), `as fast on ${verdict.all.text} as on ${verdict.alone.text}`, ` of ${number(ideal, ideal % 1 ? 1 : 0)}×`);
    if (verdict.blames_allocator && share.value > 0) tile(share, percentOf(share), 'of what it loses: the allocator');
    const best = data.fixes.find((fix) => fix.best);
    if (best && !isOpen) tile(best.gain, timesOf(best.gain), `as fast with ${best.text}`);
    byId('tiles').append(...shown);
  }

  // What is lost, as one bar.
  function parts() {
    const sum = verdict.parts.reduce((total, part) => total + part.share.value, 0);
    if (sum === 0) return byId('parts').remove();
    byId('parts').classList.toggle('open', isOpen);
    byId('parts-title').textContent = isOpen ? 'Not decided. What the trials so far point to' : 'What is lost goes to';
    const colors = verdict.parts.map((part, i) => (part.allocator ? '--c1' : palette[i % palette.length]));
    const scale = Math.max(1, sum);
    // Each rounded sum less the one before, so that the labels add up to what the bar shows.
    const step = Math.max(...verdict.parts.map((part) => stepOf(part.share)));
    const rounded = (share) => step * Math.round((100 * share) / step);
    let before = 0;
    const label = (text, share) => {
      const shown = rounded(before + share) - rounded(before);
      before += share;
      return `${text}: ${shown === 0 && share > 0 ? `<${step}` : shown}%`;
    };
    const entries = verdict.parts.map((part, i) => [label(part.text, part.share.value), colors[i], part.share.value]);
    if (rounded(sum) < 100) entries.push([label('not explained', 1 - sum), '--c6', 1 - sum]);
    for (const [text, color, share] of entries) byId('parts-bar').append(make('div', { style: `width: ${(100 * share) / scale}%; background: var(${color})`, title: text }));
    legend('parts-legend', entries);
  }

  function lines(list) {
    return list.map(([what, text]) => make('div', { class: 'step' }, make('p', {}, what), make('pre', { tabindex: '0' }, make('code', {}, text))));
  }
  function steps() {
    if (data.steps.length === 0) return byId('steps').remove();
    if (isOpen) byId('steps-title').textContent = 'What would decide it';
    byId('steps-list').append(...lines(data.steps.map((step) => [step.what, step.lines])));
  }

  function advised() {
    if (data.advice.length === 0) return byId('advised').remove();
    byId('advised-list').append(...data.advice.map((site) => make('p', {}, `${site.site}: ${site.sentence}`)));
  }

  // ---- what was tried

  function fixes() {
    if (data.fixes.length === 0) return byId('fixes').remove();
    byId('fixes-lead').textContent = `The program as it was, with another allocator, on ${verdict.all.text}: how many times as fast. The line is where nothing changes, the bar reaches to the median, the whisker is the range in which nine of ten repetitions would end.`;
    const top = Math.max(1.5, ...data.fixes.filter((fix) => fix.gain).map((fix) => 1.05 * fix.gain.high));
    byId('fixes-table').append(heads(['with', 'times as fast', '', 'peak memory', ''], [0, 2, 4]), make('tbody', {}, ...data.fixes.map((fix) => make('tr', { class: fix.best && !isOpen ? 'ours' : '' },
      name(fix.text), make('td', {}, fix.gain_text, make('div', { class: 'muted range' }, fix.range_text)),
      make('td', { class: 'name bars' }, fix.gain ? page.ratioBar(fix.gain.value, fix.gain.low, fix.gain.high, 1, fix.gain.value >= 1, top) : ''),
      cell(fix.memory ? `× ${number(fix.memory.value, 2)}` : '–'), name(fix.judgement)))));
  }

  // ---- scaling

  const sweep = () => experiment.cells.filter((c) => c.setting.copies === 1);
  function scaling() {
    const cells = sweep().filter((c) => c.speed !== null && (c.setting.threads === null || c.setting.threads <= c.setting.cpus));
    const widths = [...new Set(cells.map((c) => c.setting.width))].sort((a, b) => a - b);
    if (widths.length < 2) return byId('scaling').remove();
    const copies = experiment.cells.filter((c) => c.setting.copies > 1 && c.variant === 0 && c.speed !== null);
    const most = Math.max(...widths, ...copies.map((c) => c.setting.copies * c.setting.width));
    // Every whole number, so that the curves bend; of many, those that were measured and some between them.
    const x = [...new Set([...widths, ...copies.map((c) => c.setting.copies * c.setting.width), ...Array.from({ length: 96 }, (_, i) => Math.round(widths[0] + (i * (most - widths[0])) / 95))])].sort((a, b) => a - b);
    const threads = data.settings.knob !== 'affinity';
    const drawn = variants.map((v, i) => i).filter((i) => cells.some((c) => c.variant === i));
    const measured = (i) => {
      const at = (n) => cells.find((c) => c.variant === i && c.setting.width === n);
      const fitted = data.scalability.some((law) => law.variant === i);
      return { label: variants[i].text, color: colorOf(i), values: x.map((n) => (at(n) ? at(n).speed : null)), onlyPoints: fitted, ifKnown: true,
        ranges: x.map((n) => (at(n) && at(n).trials.length > 1 ? [(at(n).speed * at(n).cost) / at(n).greatest_cost, (at(n).speed * at(n).cost) / at(n).least_cost] : null)) };
    };
    const law = ({ variant, contention, coherency }) => ({ label: variants[variant].text, color: colorOf(variant), silent: true, noPoints: true, strong: variants[variant].treatment === 'none',
      values: x.map((n) => (n <= widths[widths.length - 1] ? n / (1 + contention * (n - 1) + (coherency || 0) * n * (n - 1)) : null)) });
    const apart = { label: 'separate processes', color: '--ink', noPoints: true, ifKnown: true, dashed: true,
      values: x.map((n) => (n === widths[0] ? 1 : (copies.find((c) => c.setting.copies * c.setting.width === n) || { speed: null }).speed)) };
    const ideal = { label: 'ideal', dashed: true, silent: true, values: x.map((n) => n / widths[0]) };
    byId('scaling-lead').textContent = `How many times as fast as ${verdict.alone.text}, each allocator against itself. Points are medians, whiskers reach from the slowest run to the fastest, lines are the Universal Scalability Law fitted to the points.`;
    legend('scaling-legend', [...drawn.map((i) => [variants[i].text, colorOf(i)]), ...(copies.length ? [['separate processes, which share nothing', '--ink']] : [])], 'ideal');
    const top = 1.08 * Math.max(most / widths[0], ...cells.map((c) => c.speed), ...copies.map((c) => c.speed));
    plotInto(byId('scaling-plot'), 'Speed-up', x, [ideal, ...data.scalability.map(law), ...drawn.map(measured), ...(copies.length ? [apart] : [])],
      { top, unit: '×', digits: 2, label: 'times as fast', xName: threads ? 'thread' : 'CPU', height: 340, ticks: [...new Set([...widths, most])] });
    byId('law-table').append(heads(['with', 'contention σ', 'coherency κ', 'worst error']),
      make('tbody', {}, ...data.scalability.map((one) => make('tr', {}, name(variants[one.variant].text), cell(number(one.contention, 3)), cell(number(one.coherency, 4)), cell(percent(one.worst_error))))));
  }

  // ---- places in the program

  // The site's line; its stacks unfold.
  function where(place) {
    const frames = (stack) => stack.frames.map((i) => recording.frames[i]);
    const first = place.stacks.length ? frames(place.stacks[0])[0] : undefined;
    const head = make('summary', {}, make('b', {}, place.text), ' ', make('span', { class: 'muted function' }, (first && first.file && first.function) || ''));
    const folded = make('details', { class: 'place' }, head);
    folded.addEventListener('toggle', () => {
      if (folded.childElementCount > 1) return;
      if (place.via) folded.append(make('p', { class: 'muted small' }, 'calls ', make('code', {}, place.via)));
      for (const stack of place.stacks) {
        folded.append(make('p', { class: 'muted small' }, `${percent(stack.share)} of it from`), make('ol', { class: 'stack' }, ...frames(stack).map(frameLine)));
        if (stack.all_frames > stack.frames.length) folded.append(make('p', { class: 'muted small' }, `and ${plural(stack.all_frames - stack.frames.length, 'frame')} more`));
      }
      if (place.all_stacks > place.stacks.length) folded.append(make('p', { class: 'muted small' }, `and ${plural(place.all_stacks - place.stacks.length, 'stack')} more`));
    });
    return make('td', { class: 'name where' }, folded);
  }

  function sites() {
    const rows = recording.sites;
    if (rows.length === 0) return byId('sites').remove();
    const { allocating, freeing } = recording;
    byId('sites-lead').textContent = `${count(allocating.calls)} allocations and ${count(freeing.calls)} frees took ${percent(recording.cpu_share)} of its CPU time. Shares are of that time, the frees of a site's blocks included. Press a title to sort, a place to see who calls it.`;
    sortable(byId('sites-table'), [
      ['where', (s) => s.place.text, (s) => where(s.place)],
      ['share of time', (s) => s.time_share, (s) => make('td', {}, percent(s.time_share), make('div', { class: 'bar' }, make('div', { style: `width: ${100 * s.time_share}%; background: var(--c1)` })))],
      ['allocations', (s) => s.time.calls, (s) => cell(count(s.time.calls))],
      ['ns each', (s) => s.time.mean_ns, (s) => cell(number(s.time.mean_ns, 0))],
      ['bytes each', (s) => s.typical_bytes, (s) => cell(`${s.fixed_size ? '' : '~'}${number(s.typical_bytes, 0)}`)],
      ['freed by others', (s) => s.freed_elsewhere, (s) => cell(percent(s.freed_elsewhere))],
      ['lifetime', (s) => s.median_lifetime_s, (s) => cell(s.median_lifetime_s === null ? 'lives on' : seconds(s.median_lifetime_s))],
      ['held at peak', (s) => s.live_bytes_at_peak, (s) => cell(bytes(s.live_bytes_at_peak))],
    ], rows, 1, byId('sites-more'));
    byId('sites-left-out').textContent = recording.sites_left_out ? `${plural(recording.sites_left_out, 'site')} with less time left out here; --json has all.` : '';
  }

  function remote() {
    const rows = recording.remote_sites;
    if (rows.length === 0 && recording.remote_threads.length === 0) return byId('remote').remove();
    byId('remote-lead').textContent = `${percent(recording.remote_share)} of the blocks are freed by another thread than the one that allocated them.`;
    const at = (row) => (recording.sites[row.site] ? where(recording.sites[row.site].place) : name(row.allocated_at));
    byId('remote-sites').append(heads(['allocated at', 'freed at', 'share'], [0, 1]),
      make('tbody', {}, ...rows.map((row) => make('tr', {}, at(row), where(row.freed_at), cell(percent(row.share))))));
    matrix();
  }

  // From whom (lines) to whom (columns).
  function matrix() {
    const rows = recording.remote_threads;
    if (rows.length === 0) return byId('remote-threads').parentElement.remove();
    const ids = [...new Set(rows.flatMap((row) => [row.from, row.to]))].sort((a, b) => a - b);
    const most = Math.max(...rows.map((row) => row.share));
    const square = (from, to) => {
      const row = rows.find((one) => one.from === from && one.to === to);
      if (!row) return cell(from === to ? '' : '·', { class: 'none' });
      return cell(number(100 * row.share, row.share < 0.0995 ? 1 : 0), { style: `background: color-mix(in srgb, var(--c1) ${Math.round((55 * row.share) / most)}%, var(--card))`, title: `${count(row.frees)} frees` });
    };
    byId('remote-threads').append(
      make('thead', {}, make('tr', {}, make('th', { class: 'name' }, '% of them from ↓ to →'), ...ids.map((id) => make('th', {}, String(id))))),
      make('tbody', {}, ...ids.map((from) => make('tr', {}, make('th', { class: 'name' }, String(from)), ...ids.map((to) => square(from, to))))));
  }

  function sharing() {
    if (recording.sharing.length === 0) return byId('sharing').remove();
    byId('sharing-lead').textContent = `${percent(recording.shared_line_share)} of ${count(recording.lines_watched)} lines that were watched held blocks of threads that have nothing else to do with each other. Whoever writes such a line makes the others wait for it.`;
    byId('sharing-table').append(heads(['a block from', 'beside one from', 'bytes', 'lines', 'for long'], [0, 1]),
      make('tbody', {}, ...recording.sharing.map((row) => make('tr', {}, where(row.places[0]), where(row.places[1]), cell(`${number(row.bytes[0], 0)}, ${number(row.bytes[1], 0)}`), cell(count(row.lines)), cell(count(row.lines_for_long))))));
  }

  function locks() {
    if (recording.lock_waits.length === 0) return byId('locks').remove();
    byId('locks-lead').textContent = `${percent(recording.lock_wait_share)} of its threads' lives.`;
    sortable(byId('locks-table'), [
      ['where', (w) => w.place.text, (w) => where(w.place)],
      ['share of lives', (w) => w.share, (w) => cell(percent(w.share))],
      ['waits', (w) => w.count, (w) => cell(count(w.count))],
      ['seconds', (w) => w.seconds, (w) => cell(figure(w.seconds))],
      ['kind', (w) => w.kind, (w) => cell(w.kind)],
    ], recording.lock_waits, 1);
  }

  // ---- what it allocates

  function histogram(id, bins) {
    const most = Math.max(...bins.map((bin) => bin.value));
    if (!(most > 0)) return byId(id).parentElement.remove();
    const total = bins.reduce((sum, bin) => sum + bin.value, 0);
    byId(id).append(...bins.flatMap((bin) => [make('span', { class: 'bin' }, bin.text),
      make('div', { class: 'column', title: `${count(bin.value)} of them` }, make('div', { style: `width: ${(100 * bin.value) / most}%; background: var(${bin.color || '--c0'})` })),
      make('span', { class: 'amount' }, percent(bin.value / total))]));
  }

  function memory() {
    byId('memory-lead').textContent = `${count(recording.allocations_per_s)} allocations a second; ${bytes(recording.peak_live_bytes)} in use at the peak, ${bytes(recording.live_bytes_at_end)} at the end. Sizes and lifetimes are shares of all allocations.`;
    const history = recording.history;
    if (history.length > 1) {
      const x = history.map((point) => point.at_s);
      const plot = (title, values, unit, digits, label) => plotInto(byId('memory-plots'), title, x, [{ label: title, color: '--c0', values, noPoints: true }],
        { top: 1.1 * Math.max(...values, 1e-9), unit, digits, label, xName: 'second', height: 220, continuous: true });
      plot('Memory in use', history.map((point) => point.live_bytes / 1048576), ' MiB', 1, 'MiB');
      plot('Allocations', history.map((point) => point.allocations_per_s / 1e6), ' million/s', 2, 'millions a second');
    }
    histogram('sizes', recording.sizes.map((bin) => ({ text: `to ${bytes(bin.most_bytes).replace('.0', '')}`, value: bin.allocations })));
    histogram('lifetimes', [...recording.lifetimes.map((bin) => ({ text: `to ${power(bin.most_s)}`, value: bin.blocks })), ...(recording.lived_on ? [{ text: 'lived on', value: recording.lived_on, color: '--c6' }] : [])]);
  }

  // ---- everything

  function repetitions() {
    if (data.repetitions.length === 0) return byId('repeat').remove();
    byId('repeat-summary').textContent = plural(data.repetitions.length, 'command');
    byId('repeat-list').append(...lines(data.repetitions.map((one) => [one.what, one.shell])));
  }

  function figures() {
    const titles = ['with', 'setting', 'median', 'fastest', 'slowest', 'spread', 'times as fast', 'ideal', 'CPUs busy', 'peak memory', 'runs'];
    const rows = experiment.cells.filter((c) => c.cost !== null || c.failure).map((c) => make('tr', {}, name(variants[c.variant].text), name(c.setting.text),
      ...(c.cost === null ? [cell(c.failure || 'not measured', { colspan: '9', class: 'name' })]
        : [seconds(c.cost), seconds(c.least_cost), seconds(c.greatest_cost), percent(c.spread), number(c.speed, 2), number(c.ideal_speed, 2), number(c.busy_cpus, 1), megabytes(c.peak_rss_bytes), String(c.trials.length)].map((text) => cell(text)))));
    byId('figures').append(heads(titles, [0, 1]), make('tbody', {}, ...rows));
  }

  const recorded = { sites, remote, sharing, locks, memory };
  page.frame({ ...data, notes: [...data.findings, ...data.notes] }, [], 'freehold doctor');
  answer();
  steps();
  fixes();
  scaling();
  for (const [id, draw] of Object.entries(recorded)) {
    if (recording) draw();
    else byId(id).remove();
  }
  advised();
  repetitions();
  figures();
  page.finish();
})();
