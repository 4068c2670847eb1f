// SPDX-License-Identifier: MIT
// Shared by all pages: elements, legends, plots. Every text from the data goes through textContent, so that names are never markup.
'use strict';
const page = (() => {
  const began = performance.now();
  // An element with attributes and children; texts are texts.
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }
  const byId = (id) => document.getElementById(id);
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const number = (value, digits) => (value === null || value === undefined ? '–' : value.toFixed(digits));
  const megabytes = (bytes) => (bytes === null ? '–' : `${(bytes / 1048576).toFixed(1)} MiB`);
  const plural = (n, word) => `${n} ${word}${n === 1 ? '' : 's'}`;
  const percent = (share) => (share > 0 && share < 0.005 ? '<1%' : `${number(100 * share, 0)}%`);
  const cell = (text, attributes = {}) => make('td', attributes, text);
  const name = (...children) => make('td', { class: 'name' }, ...children);
  // The head of a table; `named`: the places of titles that stand to the left.
  const heads = (titles, named = [0]) => make('thead', {}, make('tr', {}, ...titles.map((title, i) => make('th', { class: named.includes(i) ? 'name' : '', scope: 'col' }, title))));
  const tile = (value, label, small = '') => make('div', { class: 'tile' }, make('b', {}, value), make('span', {}, label), make('i', {}, small));

  // entries: [text, colour]; ideal: what the dashed line is, if there is one.
  function legend(id, entries, ideal) {
    const swatch = (name) => make('i', { class: 'swatch', style: `color: var(${name})` });
    byId(id).append(...entries.map(([text, name]) => make('span', {}, swatch(name), text)));
    if (ideal) byId(id).append(make('span', {}, make('i', { class: 'swatch dashed' }), ideal));
  }

  // Entries that switch the lines of plots on and off by their labels. entries: [label, colour, on]; plots: what plotInto() returned.
  function switches(id, entries, plots) {
    byId(id).append(...entries.map(([text, color, on]) => {
      const button = make('button', { type: 'button', class: 'switch', 'aria-pressed': String(on) }, make('i', { class: 'swatch', style: `color: var(${color})` }), text);
      button.addEventListener('click', () => {
        button.setAttribute('aria-pressed', String(on = !on));
        for (const plot of plots) plot.setSeries(plot.series.findIndex((line) => line.label === text), { show: on });
      });
      return button;
    }));
  }

  const known = (values) => values.filter((value) => value !== null && value !== undefined);
  // Three digits that count.
  const figure = (value) => number(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
  function units(value, names, base) {
    let i = 0;
    for (; value >= 0.9995 * base && i + 1 < names.length; ++i) value /= base;
    return `${number(value, i > 0 && value < 9.95 ? 1 : 0)}${names[i]}`;
  }
  const count = (value) => units(value, ['', ' k', ' M', ' G'], 1000);
  const bytes = (value) => units(value, [' B', ' KiB', ' MiB', ' GiB', ' TiB'], 1024);
  // The classes of a matrix, by the ratio to the best.
  const heats = [[1.05, 'within 5%'], [1.5, 'to 1.5×'], [3, 'to 3×'], [10, 'to 10×'], [Infinity, 'more']];
  const heat = (ratio) => heats.findIndex(([limit]) => ratio <= limit);
  // A bar from 0 to `top` with a line at `mark`.
  function ratioBar(ratio, least, greatest, mark, good, top) {
    const percent = (value) => `${(100 * Math.min(value, top)) / top}%`;
    return make('div', { class: 'ratio' },
      make('div', { class: `fill ${good ? 'won' : 'lost'}`, style: `width: ${percent(ratio)}` }),
      make('div', { class: 'whisker', style: `left: ${percent(least)}; right: calc(100% - ${percent(greatest)})` }),
      make('div', { class: 'one', style: `left: ${percent(mark)}` }));
  }

  // A claim of an experiment, decided by a ratio and its limits: as a bar; in words.
  function claimBar(claim) {
    if (claim.ratio === null) return '';
    const good = claim.at_least ? claim.ratio >= claim.threshold : claim.ratio <= claim.threshold;
    return ratioBar(claim.ratio, claim.least_ratio, claim.greatest_ratio, claim.threshold, good, Math.max(2 * claim.threshold, Math.min(claim.greatest_ratio, 4 * claim.threshold)));
  }
  const claimRatio = (claim) => (claim.ratio === null ? '' : `${number(claim.ratio, 2)} (${number(claim.least_ratio, 2)}–${number(claim.greatest_ratio, 2)} by ${plural(claim.sets, 'set')}${claim.disturbed ? ', beside other programs' : ''})`);
  const claimWanted = (claim) => (claim.ratio === null ? '' : `${claim.at_least ? '≥' : '≤'} ${number(claim.threshold, 2)}`);

  // columns: [title, value of a row to sort by, cell of a row]. Sorted by the column whose title is pressed, the greatest first.
  // Returns what shows those rows only that a function wants.
  function sortable(table, columns, rows, by, more) {
    let column = by, descending = true, shown = more ? 20 : rows.length, keep = () => true;
    const cells = new Map();
    const body = make('tbody');
    const line = (row) => {
      if (!cells.has(row)) cells.set(row, make('tr', {}, ...columns.map(([, , draw]) => draw(row))));
      return cells.get(row);
    };
    const draw = () => {
      const value = columns[column][1];
      const compare = (a, b) => (typeof a === 'string' ? a.localeCompare(b) : (a ?? -Infinity) - (b ?? -Infinity));
      rows.sort((a, b) => (descending ? compare(value(b), value(a)) : compare(value(a), value(b))));
      const kept = rows.filter(keep);
      body.replaceChildren(...kept.slice(0, shown).map(line));
      heads.forEach((head, i) => head.setAttribute('aria-sort', i !== column ? 'none' : descending ? 'descending' : 'ascending'));
      if (!more) return;
      more.hidden = kept.length <= shown;
      more.textContent = `Show all ${kept.length}`;
    };
    const heads = columns.map(([title], i) => {
      const button = make('button', { type: 'button', class: 'sort' }, title);
      button.addEventListener('click', () => {
        descending = i === column ? !descending : rows.length === 0 || typeof columns[i][1](rows[0]) !== 'string';
        column = i;
        draw();
      });
      return make('th', { class: i ? '' : 'name', scope: 'col' }, button);
    });
    if (more) more.onclick = () => { shown = rows.length; draw(); };
    table.append(make('thead', {}, make('tr', {}, ...heads)), body);
    draw();
    return (which) => { keep = which; draw(); };
  }

  const fileOf = (path) => path.slice(path.lastIndexOf('/') + 1);
  function frameLine(frame) {
    const at = frame.file ? `${frame.file}:${frame.line}` : frame.module ? `in ${fileOf(frame.module)}` : '';
    return make('li', frame.inlined ? { class: 'inlined', title: 'inlined' } : {}, make('code', {}, frame.function || '?'), ' ', make('span', { class: 'muted' }, at));
  }

  const plots = [];
  const shownIn = (plot, lines) => lines.filter((line, i) => plot.series[i + 1].show);

  // Vertical lines from the least to the greatest value of the sets.
  function drawWhiskers(plot, lines) {
    const { ctx } = plot;
    ctx.save();
    ctx.setLineDash([]);
    ctx.globalAlpha = 0.55;
    ctx.lineWidth = 1.5 * devicePixelRatio;
    for (const line of shownIn(plot, lines)) {
      if (!line.ranges) continue;
      ctx.strokeStyle = color(line.color);
      line.ranges.forEach((range, i) => {
        if (!range) return;
        const x = Math.round(plot.valToPos(plot.data[0][i], 'x', true));
        ctx.beginPath();
        ctx.moveTo(x, plot.valToPos(range[0], 'y', true));
        ctx.lineTo(x, plot.valToPos(range[1], 'y', true));
        ctx.stroke();
      });
    }
    ctx.restore();
  }

  // The articles' own values, hollow rhombs.
  function drawMarks(plot, lines) {
    const { ctx } = plot;
    const size = 5.5 * devicePixelRatio;
    ctx.save();
    ctx.setLineDash([]);
    ctx.globalAlpha = 0.7;
    ctx.lineWidth = 1.5 * devicePixelRatio;
    for (const line of shownIn(plot, lines)) {
      ctx.strokeStyle = color(line.color);
      (line.marks || []).forEach((mark, i) => {
        if (mark === null) return;
        const [x, y] = [plot.valToPos(plot.data[0][i], 'x', true), plot.valToPos(mark, 'y', true)];
        ctx.beginPath();
        for (const [dx, dy] of [[-size, 0], [0, -size], [size, 0], [0, size]]) ctx.lineTo(x + dx, y + dy);
        ctx.closePath();
        ctx.stroke();
      });
    }
    ctx.restore();
  }

  const hasRoomForNames = (plot) => plot.width >= 480;
  // Names at the right end of the lines, moved apart where they would overlap.
  function drawNames(plot, lines) {
    if (!hasRoomForNames(plot)) return;
    const { ctx } = plot;
    const height = 13 * devicePixelRatio;
    const ends = shownIn(plot, lines).filter((line) => line.name).map((line, i) => {
      const last = plot.data[lines.indexOf(line) + 1].findLast((value) => value !== null);
      return { line, y: last === undefined ? null : plot.valToPos(last, 'y', true) };
    }).filter((end) => end.y !== null).sort((a, b) => a.y - b.y);
    const bottom = plot.bbox.top + plot.bbox.height;
    for (let i = 1; i < ends.length; ++i) ends[i].y = Math.max(ends[i].y, ends[i - 1].y + height);
    for (let i = ends.length - 1; i >= 0; --i) ends[i].y = Math.min(ends[i].y, i + 1 < ends.length ? ends[i + 1].y - height : bottom);
    ctx.save();
    ctx.textBaseline = 'middle';
    ctx.textAlign = 'left';
    for (const { line, y } of ends) {
      ctx.font = `${line.strong ? 'bold ' : ''}${11 * devicePixelRatio}px system-ui, sans-serif`;
      ctx.fillStyle = color(line.color);
      ctx.fillText(line.name, plot.bbox.left + plot.bbox.width + 6 * devicePixelRatio, y);
    }
    ctx.restore();
  }

  // A box beside the pointer with every line's value at the nearest x.
  function showTip(plot, tip, lines, x, { unit, digits, xName, continuous }) {
    const i = plot.cursor.idx;
    const inside = plot.cursor.left >= 0 && i !== null && i !== undefined;
    tip.style.display = inside ? 'block' : 'none';
    if (!inside) return;
    const told = shownIn(plot, lines).filter((line) => !line.silent && (!line.ifKnown || line.values[i] !== null));
    tip.replaceChildren(make('b', {}, continuous ? `${figure(x[i])} ${xName}s` : plural(x[i], xName)), ...told.map((line) => make('div', {},
      make('i', { style: line.color ? `color: var(${line.color})` : '' }, line.label),
      make('span', {}, `${number((line.tips || line.values)[i], digits)}${unit}${line.marks && line.marks[i] !== null ? ` (◇ ${number(line.marks[i], digits)})` : ''}`))));
    const over = plot.over;
    const left = over.offsetLeft + plot.valToPos(x[i], 'x');
    const toTheLeft = left + tip.offsetWidth + 24 > over.offsetLeft + over.clientWidth;
    tip.style.left = `${toTheLeft ? left - tip.offsetWidth - 4 : left + 20}px`;
    tip.style.top = `${over.offsetTop + 34}px`;
  }

  // lines: {label, values, color (a CSS variable), ranges?, marks? (an article's values), dashed?, strong?, name? (written at its end), tips? (told
  // instead of the values), noPoints?, onlyPoints?, hidden? (until it is switched on), silent? (nothing in the box), ifKnown? (there only with a value)}.
  // scale: {top, unit, digits, label, xName, bottom? (of a logarithmic scale), bottomText?, height?, ticks? (on the x axis; else
  // every x), continuous? (x is no count)}
  function plotInto(parent, title, x, lines, scale) {
    const { top, label, xName, bottom, bottomText, height = 250, ticks = x, continuous } = scale;
    const canvas = make('div', { class: 'canvas', role: 'img', 'aria-label': `${title}: ${label}` });
    const tip = make('div', { class: 'tip' });
    const card = make('div', { class: 'card plot' }, make('h4', {}, title), canvas, tip);
    parent.append(card);
    const wide = !continuous && x[x.length - 1] > 15;
    const margin = continuous ? 0 : 0.25;
    const named = lines.some((line) => line.name);
    const axis = { stroke: () => color('--muted'), grid: { stroke: () => color('--grid'), width: 1 }, ticks: { show: false },
      font: '12px system-ui, sans-serif', labelFont: '12px system-ui, sans-serif', labelSize: 18 };
    const options = {
      width: canvas.clientWidth || 400, height, legend: { show: false }, padding: [10, (plot) => (named && hasRoomForNames(plot) ? 150 : 16), 0, 0],
      scales: {
        x: { time: false, distr: wide ? 3 : 1, log: 2, range: () => (wide ? [x[0], x[x.length - 1]] : [x[0] - margin, x[x.length - 1] + margin]) },
        y: bottom ? { distr: 3, range: () => [bottom, top] } : { range: () => [0, top] },
      },
      axes: [
        continuous ? { ...axis, size: 30, label: `${xName}s`, grid: { show: false } }
          : { ...axis, size: 30, label: `${xName}s`, splits: () => ticks, filter: (u, splits) => splits, values: (u, splits) => splits.map((value) => count(value)), grid: { show: false } },
        bottom ? { ...axis, size: 52, label, values: (u, splits) => splits.map((v) => (v === null ? '' : bottomText && v <= bottom ? bottomText : String(v))) }
          : { ...axis, size: 44, label },
      ],
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 9 } },
      series: [{}, ...lines.map((line) => ({
        label: line.label, show: !line.hidden, spanGaps: true, paths: line.onlyPoints ? () => null : undefined,
        stroke: () => color(line.color || '--muted'), width: line.dashed ? 1.5 : line.strong ? 3.5 : named ? 1.5 : 2.25, dash: line.dashed ? [6, 5] : undefined,
        points: line.dashed || line.noPoints || (named && !line.strong) ? { show: false } : { show: true, size: 7, fill: () => color(line.color), stroke: () => color('--card'), width: 1 },
      }))],
      hooks: {
        draw: [(plot) => drawWhiskers(plot, lines), (plot) => drawMarks(plot, lines), (plot) => drawNames(plot, lines)],
        setCursor: [(plot) => showTip(plot, tip, lines, x, scale)],
      },
    };
    const plot = new uPlot(options, [x, ...lines.map((line) => line.values)], canvas);
    plots.push(plot);
    new ResizeObserver(() => {
      if (Math.abs(canvas.clientWidth - plot.width) > 1) plot.setSize({ width: canvas.clientWidth, height });
    }).observe(canvas);
    return plot;
  }

  // The machine, notes and footer that every page has. `texts` come behind the machine's.
  function frame(data, texts, command) {
    const { machine } = data;
    byId('machine').textContent = [
      machine.cpu_model, `${plural(machine.cpus, 'CPU')} (${machine.cpus_source})`, machine.system, machine.libc, ...texts,
      data.date.replace('T', ' ').replace('Z', ' UTC'),
    ].filter(Boolean).join(' · ');
    byId('notes').append(...data.notes.map((note) => make('li', {}, note)));
    const minutes = data.seconds < 90 ? `${data.seconds.toFixed(0)} s` : `${(data.seconds / 60).toFixed(1)} min`;
    byId('footer').textContent = `Measured in ${minutes} by “${command}”. Plots by uPlot (MIT licence). This page fetches nothing.`;
  }

  // To be called last.
  function finish() {
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => plots.forEach((plot) => plot.redraw(false)));
    document.documentElement.dataset.ready = String(plots.length);
    document.documentElement.dataset.milliseconds = String(Math.round(performance.now() - began));
  }

  return { data: JSON.parse(document.getElementById('data').textContent), make, byId, number, megabytes, plural, percent, cell, name, heads, tile, known, figure, heats, heat, ratioBar, claimBar, claimRatio, claimWanted, legend, switches, plotInto, count, bytes, sortable, fileOf, frameLine, frame, finish };
})();
