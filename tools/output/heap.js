// SPDX-License-Identifier: MIT
// Draws the page of freehold heap from its JSON (cli/heap/page.cpp).
'use strict';
(() => {
  const { data, make, byId, number, plural, cell, tile, bytes, count, sortable, fileOf, frameLine } = page;
  const { profiles, views, frames } = data;
  const last = profiles[profiles.length - 1];
  const percent = (share) => (share > 0 && share < 0.0005 ? '<0.1%' : `${number(100 * share, 1)}%`);
  const signed = (view, text) => (data.is_growth && view < 2 ? `${views[view].sign < 0 ? '−' : '+'}${text}` : text);
  // Most programs free nearly all that they had: then the peak tells more.
  const isPeak = data.is_growth ? !(views[0].bytes > 0) && views[1].bytes > 0 : 20 * views[0].bytes < views[1].bytes;
  let shown = isPeak ? 1 : 0;
  let wanted = '';

  // ---- what it is about

  function headline() {
    const program = fileOf(last.program) || 'the program';
    const [first, second] = views;
    byId('machine').textContent = [`${last.program} (process ${last.pid})`, ...profiles.map((one) => one.date),
      last.distance_bytes ? `one sample in ${bytes(last.distance_bytes)}` : ''].filter(Boolean).join(' · ');
    const of = (view, what) => (view.sites.length > 0 ? `, ${percent(view.sites[0].bytes / view.bytes)} of ${what} at ${view.sites[0].text}` : '');
    const share = of(first, data.is_growth ? 'the growth' : 'it');
    byId('headline').textContent = data.is_growth
      ? (first.bytes > 0 ? `${program} grew by ${bytes(first.bytes)}${share}` : `Nothing of ${program} grew`)
      : !isPeak ? `${program} has ${bytes(first.bytes)} in use${share}`
        : `${program} had ${bytes(second.bytes)} in use at the peak${of(second, 'it')}; ${first.bytes > 0 ? bytes(first.bytes) : 'nothing'} is left`;
    const samples = (view) => plural(view.samples, 'sample');
    byId('tiles').append(...(data.is_growth
      ? [tile(`+${bytes(first.bytes)}`, 'grew', samples(first)), tile(`−${bytes(second.bytes)}`, 'shrank', samples(second)), tile(bytes(views[3].bytes), 'earlier', samples(views[3])), tile(bytes(views[2].bytes), 'later', samples(views[2]))]
      : [tile(bytes(first.bytes), 'in use', samples(first)), tile(count(first.blocks), 'blocks in use', first.blocks > 0 ? `${bytes(first.bytes / first.blocks)} each` : ''), tile(bytes(second.bytes), 'at the peak', samples(second))]));
    const lost = profiles.filter((one) => one.lost_blocks > 0).map((one) => `${plural(one.lost_blocks, 'sampled block')} found no place and are missing; a larger distance of samples helps.`);
    byId('notes').append(...lost.map((note) => make('li', {}, note)));
    document.title = `Freehold: the heap of ${program}`;
    byId('footer').textContent = 'Estimates from sampled blocks, by “freehold heap”. This page fetches nothing.';
  }

  // ---- flame graph

  const rowHeight = 20;
  const noStack = { text: 'no call stack', function: 'no call stack', module: '', file: '', line: 0, library: true };
  const matches = (frame) => wanted !== '' && [frame.function, frame.file, frame.module].some((text) => text.toLowerCase().includes(wanted));

  // From the outermost call inwards; functions of one name below one caller are one.
  function treeOf(view) {
    const root = { frame: null, bytes: 0, blocks: 0, children: new Map(), parent: null, depth: 0 };
    for (const stack of view.stacks) {
      let node = root;
      const path = stack.frames.length ? stack.frames.map((i) => frames[i]).reverse() : [noStack];
      node.bytes += stack.bytes;
      node.blocks += stack.blocks;
      for (const frame of path) {
        const key = `${frame.function || frame.text}\n${frame.module}`;
        if (!node.children.has(key)) node.children.set(key, { frame, bytes: 0, blocks: 0, children: new Map(), parent: node, depth: node.depth + 1 });
        node = node.children.get(key);
        node.bytes += stack.bytes;
        node.blocks += stack.blocks;
      }
    }
    return root;
  }
  const trees = views.map(() => null);
  const tree = () => (trees[shown] ??= treeOf(views[shown]));
  const childrenOf = (node) => [...node.children.values()].sort((a, b) => b.bytes - a.bytes);
  let focus = null; // what has the whole width
  const buttons = new Map();

  const nameOf = (node) => (node.frame === null ? 'all' : node.frame.function || node.frame.text);
  function tell(node) {
    const { frame } = node;
    const place = frame === null ? '' : [frame.file ? `${fileOf(frame.file)}:${frame.line}` : '', frame.module ? `in ${fileOf(frame.module)}` : ''].filter(Boolean).join(' ');
    byId('told').textContent = `${nameOf(node)}${place ? ` (${place})` : ''}: ${signed(shown, bytes(node.bytes))} in ${count(node.blocks)} blocks, ${percent(node.bytes / tree().bytes)}`;
  }
  function tellMatches() {
    const sum = (node) => (node.frame !== null && matches(node.frame) ? node.bytes : childrenOf(node).reduce((total, child) => total + sum(child), 0));
    if (wanted === '') byId('told').textContent = tree().bytes > 0 ? '' : 'Nothing to show.';
    else byId('told').textContent = `“${wanted}” is on the stacks of ${signed(shown, bytes(sum(tree())))}, ${percent(tree().bytes ? sum(tree()) / tree().bytes : 0)}`;
  }

  function buttonOf(node, left, width) {
    const isNarrow = (width * byId('flame').clientWidth) / 100 < 24; // pixels: a name says nothing there
    const kind = node.frame === null ? 'root' : node.frame.library ? 'library' : 'own';
    const button = make('button', { type: 'button', tabindex: '-1', class: `frame ${kind}${node.frame !== null && matches(node.frame) ? ' found' : ''}${isNarrow ? ' narrow' : ''}`, title: `${nameOf(node)}: ${bytes(node.bytes)}`,
      style: `left: ${left}%; width: ${width}%; top: ${node.depth * rowHeight}px` },
      isNarrow ? '' : node.frame === null ? `all: ${signed(shown, bytes(node.bytes))}` : nameOf(node));
    if (isNarrow) button.setAttribute('aria-label', nameOf(node));
    button.addEventListener('click', () => { focus = node; drawGraph(); buttons.get(node).focus(); });
    button.addEventListener('mouseenter', () => tell(node));
    button.addEventListener('focus', () => tell(node));
    button.addEventListener('keydown', (event) => walk(event, node));
    buttons.set(node, button);
    return button;
  }
  function walk(event, node) {
    const beside = node.parent === null ? [node] : childrenOf(node.parent).filter((one) => buttons.has(one));
    const at = beside.indexOf(node);
    const to = { ArrowUp: node.parent, ArrowDown: childrenOf(node).find((one) => buttons.has(one)), ArrowLeft: beside[at - 1], ArrowRight: beside[at + 1], Escape: tree() }[event.key];
    if (!to) return;
    event.preventDefault();
    if (event.key === 'Escape') { focus = to; drawGraph(); }
    buttons.get(to).focus();
  }

  function drawGraph() {
    const leastWidth = 100 / Math.max(byId('flame').clientWidth, 300); // a pixel
    const drawn = [];
    let depth = 0;
    buttons.clear();
    const below = (node, left, width) => {
      depth = Math.max(depth, node.depth);
      drawn.push(buttonOf(node, left, width));
      let at = left;
      for (const child of childrenOf(node)) {
        const part = (width * child.bytes) / node.bytes;
        if (part >= leastWidth) below(child, at, part);
        at += part;
      }
    };
    focus ??= tree();
    if (tree().bytes > 0) {
      for (let node = focus.parent; node !== null; node = node.parent) drawn.push(buttonOf(node, 0, 100));
      below(focus, 0, 100);
      buttons.get(focus).setAttribute('tabindex', '0');
    }
    byId('flame').style.height = `${(depth + 1) * rowHeight}px`;
    byId('flame').replaceChildren(...drawn);
    byId('flame').dataset.frames = String(drawn.length);
  }

  // ---- sites

  let showSites = () => {};
  function where(site) {
    const stack = site.frames.map((i) => frames[i]);
    const folded = make('details', { class: 'place' }, make('summary', {}, make('b', {}, site.text)));
    folded.addEventListener('toggle', () => {
      if (folded.childElementCount > 1) return;
      folded.append(make('p', { class: 'muted small' }, 'The heaviest of its stacks'), make('ol', { class: 'stack' }, ...stack.map(frameLine)));
    });
    return make('td', { class: 'name where' }, folded);
  }
  function drawSites() {
    const view = views[shown];
    byId('sites-table').replaceChildren();
    showSites = sortable(byId('sites-table'), [
      ['site', (s) => s.text, where],
      [data.is_growth && shown < 2 ? view.name : 'bytes', (s) => s.bytes, (s) => make('td', {}, signed(shown, bytes(s.bytes)), make('div', { class: 'bar' }, make('div', { style: `width: ${(100 * s.bytes) / view.bytes}%; background: var(--c1)` })))],
      ['share', (s) => s.bytes, (s) => cell(percent(s.bytes / view.bytes))],
      ['blocks', (s) => s.blocks, (s) => cell(signed(shown, count(Math.abs(s.blocks))))],
      ['bytes each', (s) => s.bytes / s.blocks, (s) => cell(s.blocks > 0 ? count(s.bytes / s.blocks) : '–')],
      ['samples', (s) => s.samples, (s) => cell(String(s.samples))],
      ['error', (s) => s.error, (s) => cell(`${number(100 * s.error, 0)}%`)],
    ], [...view.sites], 1, byId('sites-more'));
    filterSites();
    byId('sites-left-out').textContent = view.all_sites > view.sites.length ? `${plural(view.all_sites - view.sites.length, 'site')} with less left out here; freehold heap show --top 0 has all.` : '';
    byId('stacks-left-out').textContent = view.stacks_left_out ? `${plural(view.stacks_left_out, 'stack')} with ${bytes(view.bytes_left_out)} in all left out here; --format pprof has all.` : '';
  }
  const filterSites = () => showSites((site) => wanted === '' || site.text.toLowerCase().includes(wanted) || site.frames.some((i) => matches(frames[i])));

  // ---- what is shown

  function show(view) {
    shown = view;
    focus = null;
    [...byId('views').children].forEach((button, i) => button.setAttribute('aria-pressed', String(i === shown)));
    drawGraph();
    drawSites();
    tellMatches();
  }

  headline();
  byId('views').append(...views.map((view, i) => {
    const button = make('button', { type: 'button', class: 'view' }, view.name);
    button.addEventListener('click', () => show(i));
    return button;
  }));
  byId('search').addEventListener('input', () => {
    wanted = byId('search').value.trim().toLowerCase();
    drawGraph();
    filterSites();
    tellMatches();
  });
  addEventListener('resize', drawGraph);
  byId('flame').addEventListener('mouseleave', tellMatches);
  // So that a link can lead to a view, or to what was searched for: #view=1&find=parse
  const asked = new URLSearchParams(location.hash.slice(1));
  if (asked.has('find')) wanted = (byId('search').value = asked.get('find')).trim().toLowerCase();
  show(views[Number(asked.get('view'))] && asked.has('view') ? Number(asked.get('view')) : shown);
  page.finish();
})();
