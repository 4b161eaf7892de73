// The graph of one output: folds, unfolds, searches and lays out what is seen. `D` is what page.rs wrote, `id` the output's element.
(function (id, D) {
  const root = document.getElementById(id);
  if (!root || root.dataset.alive) return;
  root.dataset.alive = '1';
  const N = D.n.map(n => ({ op: D.ops[n[0]], ty: D.tys[n[1]], attrs: n[2], inputs: n[3], state: n[4], users: n[5], grad: n[6] & 1, root: n[6] & 2, at: D.places[n[7]], phase: n[8], home: n[9], lies: D.lies[n[10]], name: n[11] || '', role: n[12] || '', title: '' }));
  const G = D.g.map(g => ({ label: g[0], kind: g[1], parent: g[2], ops: g[3], times: g[4], phase: g[5], path: g[6], last: g[7] }));
  const uses = new Map(D.u.map(u => [u[0] * 4 + u[1], u[2]]));
  const isOp = i => N[i].inputs.length > 0;
  const PHASES = ['#4878d0', '#b0559a', '#2f8f9d'];
  const STATES = ['pending', 'pending, cached by a read', 'device data', 'scalar'];
  const MOST = 1500, H = 50, GAPX = 16, GAPY = 34, MARGIN = 6, LANE = 8;
  let open = new Set(D.open), found = new Set(), chosen = null, scale = 1;

  const esc = s => String(s).replace(/[&<>"']/g, c => '&#' + c.charCodeAt(0) + ';');
  const short = (s, most) => [...s].length > most ? [...s].slice(0, most).join('') + '…' : s;
  const colour = n => n.state === 0 ? '#4878d0' : n.state === 1 ? '#8c6bb1' : n.state === 3 ? '#d08a2e' :
    n.role === 'parameter' || n.role === 'buffer' ? '#c44e6a' : n.role === 'optimizer state' ? '#937860' : '#3a9e5c';

  function shown(home, itself) {
    let seen = itself;
    for (let g = home; g >= 0; g = G[g].parent) if (!open.has(g)) seen = 'g' + g;
    return seen;
  }
  const ofOp = i => shown(N[i].home, 'n' + i);
  const ofSource = (i, phase) => shown(uses.get(i * 4 + phase) ?? -1, 's' + i + '.' + phase);

  // As fold.rs.
  function picture() {
    const seen = [], number = new Map(), edges = new Map(), away = new Map();
    const add = key => { if (!number.has(key)) { number.set(key, seen.length); seen.push(key); } return number.get(key); };
    for (const [key] of uses) { const s = ofSource(Math.floor(key / 4), key % 4); if (s[0] === 's') add(s); }
    const whole = s => s[0] === 'g' && G[+s.slice(1)].kind === 'phase';
    N.forEach((n, i) => {
      if (!isOp(i)) return;
      const here = ofOp(i), to = add(here);
      for (const input of n.inputs) {
        const from = isOp(input) ? ofOp(input) : ofSource(input, n.phase);
        if (from === here) continue;
        if (isOp(input) && N[input].phase === 0 && n.phase !== 0 && !(whole(from) && whole(here))) {
          if (!away.has(to)) away.set(to, new Set());
          away.get(to).add(input);
        } else {
          if (!edges.has(to)) edges.set(to, new Set());
          edges.get(to).add(add(from));
        }
      }
    });
    const inputs = seen.map((_, i) => [...(edges.get(i) || [])]);
    for (const [to, values] of away) { inputs[to].push(seen.length); inputs.push([]); seen.push({ to, values: [...values] }); }
    return { seen, inputs };
  }

  function label(s) {
    if (typeof s === 'object') {
      const names = s.values.slice(0, 2).map(i => '%' + i + ' ' + N[i].op).join(', ');
      const more = s.values.length > 2 ? ' and ' + (s.values.length - 2) + ' more' : '';
      return { lines: ['from forward', short(names + more, 44), ''], title: 'values of the forward ops that these gradients need', colour: '#888888', dashed: 1 };
    }
    if (s[0] === 'g') {
      const g = G[+s.slice(1)], each = g.times > 1 ? Math.floor(g.ops / g.times) + ' ops each' : g.ops + (g.ops === 1 ? ' op' : ' ops');
      return { lines: [short(g.times > 1 ? g.label + ' ×' + g.times : g.label, 44), each, g.last], title: g.path + ' · ' + each + ' · click to unfold', colour: PHASES[g.phase], group: +s.slice(1) };
    }
    const i = parseInt(s.slice(1)), n = N[i];
    const name = n.state === 3 ? n.attrs : n.state === 2 && n.name ? n.name : n.name && n.role === 'variable' ? n.name + ' = ' + n.op : n.op;
    const ty = n.ty + (n.state !== 3 && n.attrs ? ' ' + n.attrs : '');
    return {
      lines: [short(name + (n.grad ? ' ∇' : '') + (n.users > 1 ? ' ×' + n.users : ''), 44), short(ty, 34), short(n.at, 28)], node: i, colour: colour(n), edge: n.lies && n.lies[1], result: n.root,
      title: '%' + i + ' ' + n.op + ' ' + n.ty + ' ' + n.attrs + (n.name ? ' · ' + n.role + ' ' + n.name : '') + (n.lies ? ' · ' + n.lies[0] : '') + ' · ' + STATES[n.state] + ' · ' + n.at,
    };
  }

  // As layout.rs: layers by longest path, order by barycentres, columns by blocks that give way to each other.
  function settle(wishes, widths) {
    const blocks = [];
    wishes.forEach((wish, i) => {
      blocks.push({ first: i, sum: wish, count: 1, width: widths[i] });
      while (blocks.length > 1) {
        const a = blocks[blocks.length - 2], b = blocks[blocks.length - 1];
        if (a.sum / a.count + a.width <= b.sum / b.count) break;
        blocks.splice(-2, 2, { first: a.first, sum: a.sum + b.sum - a.width * b.count, count: a.count + b.count, width: a.width + b.width });
      }
    });
    const out = [];
    for (const b of blocks) { let x = b.sum / b.count; for (let i = b.first; i < b.first + b.count; i++) { out.push(x); x += widths[i]; } }
    return out;
  }
  function layout(widths, inputs) {
    const order = [], mark = inputs.map(() => 0);
    for (let s = 0; s < inputs.length; s++) {
      const stack = [s];
      while (stack.length) {
        const i = stack[stack.length - 1];
        if (mark[i] === 2) { stack.pop(); continue; }
        if (mark[i] === 1) { mark[i] = 2; order.push(i); stack.pop(); continue; }
        mark[i] = 1;
        for (const f of inputs[i]) if (!mark[f]) stack.push(f);
      }
    }
    const layer = inputs.map(() => 0), first = inputs.map(() => Infinity);
    for (const i of order) layer[i] = Math.max(0, ...inputs[i].map(f => layer[f] + 1));
    for (const i of order.slice().reverse()) {
      if (inputs[i].every(f => !inputs[f].length) && first[i] < Infinity) layer[i] = first[i] - 1;
      for (const f of inputs[i]) first[f] = Math.min(first[f], layer[i]);
    }
    const items = widths.map((w, i) => ({ l: layer[i], w, up: [], down: [], x: 0, p: 0 }));
    const chains = [];
    inputs.forEach((all, to) => all.forEach(from => {
      const chain = [from];
      for (let l = layer[from] + 1; l < layer[to]; l++) { items.push({ l, w: LANE, up: [], down: [], x: 0, p: 0 }); chain.push(items.length - 1); }
      chain.push(to);
      for (let k = 1; k < chain.length; k++) { items[chain[k - 1]].down.push(chain[k]); items[chain[k]].up.push(chain[k - 1]); }
      chains.push(chain);
    }));
    const rows = Array.from({ length: Math.max(-1, ...layer) + 1 }, () => []);
    items.forEach((it, i) => rows[it.l].push(i));
    const number = row => row.forEach((i, n) => items[i].p = (n + 0.5) / row.length);
    rows.forEach(number);
    const sweep = (turns, f) => { for (let s = 0; s < turns; s++) { const down = s % 2 === 0; for (let k = 0; k < rows.length; k++) f(down ? k : rows.length - 1 - k, down); } };
    sweep(12, (r, down) => {
      const key = new Map(rows[r].map(i => { const near = down ? items[i].up : items[i].down; return [i, near.length ? near.reduce((s, j) => s + items[j].p, 0) / near.length : items[i].p]; }));
      rows[r].sort((a, b) => key.get(a) - key.get(b));
      number(rows[r]);
    });
    rows.forEach(row => { let x = 0; row.forEach(i => { items[i].x = x; x += items[i].w + GAPX; }); });
    sweep(15, (r, down) => {
      const wish = i => { const near = down ? items[i].up : items[i].down; return near.length ? near.reduce((s, j) => s + items[j].x + items[j].w / 2, 0) / near.length - items[i].w / 2 : items[i].x; };
      settle(rows[r].map(wish), rows[r].map(i => items[i].w + GAPX)).forEach((x, k) => items[rows[r][k]].x = x);
    });
    let left = Infinity, right = 0;
    items.forEach(it => left = Math.min(left, it.x));
    items.forEach(it => { it.x += MARGIN - left; right = Math.max(right, it.x + it.w); });
    const top = l => MARGIN + l * (H + GAPY);
    const edges = chains.map(c => { const points = []; c.forEach((i, n) => { const x = items[i].x + items[i].w / 2, y = top(items[i].l); if (n) points.push([x, y]); if (n + 1 < c.length) points.push([x, y + H]); }); return { from: c[0], to: c[c.length - 1], points }; });
    return { boxes: widths.map((w, i) => ({ x: items[i].x, y: top(items[i].l), w })), edges, width: right + MARGIN, height: top(rows.length) - GAPY + MARGIN };
  }

  const bar = document.createElement('div'), chips = document.createElement('div'), stage = document.createElement('div'), told = document.createElement('div');
  bar.style.cssText = 'display:flex;gap:6px;align-items:center;flex-wrap:wrap;font-size:.85em;margin:4px 0';
  chips.style.cssText = 'display:flex;gap:4px;flex-wrap:wrap;font-size:.8em;max-height:4.4em;overflow:auto;margin-bottom:4px';
  stage.style.cssText = 'overflow:auto;max-height:640px;border-radius:4px';
  told.style.cssText = 'font-size:.82em;opacity:.8;min-height:1.4em;white-space:pre-wrap';
  const button = (text, title, f) => { const b = document.createElement('button'); b.type = 'button'; b.textContent = text; b.title = title; b.style.cssText = 'font:inherit;color:inherit;background:rgba(128,128,128,.14);border:1px solid rgba(128,128,128,.4);border-radius:4px;padding:0 7px;cursor:pointer'; b.onclick = f; return b; };
  const search = document.createElement('input');
  search.type = 'search'; search.placeholder = 'op, name, line…'; search.setAttribute('aria-label', 'search the graph by op, name or line');
  search.style.cssText = 'font:inherit;color:inherit;background:rgba(128,128,128,.1);border:1px solid rgba(128,128,128,.4);border-radius:4px;padding:1px 6px;width:14em';

  const inside = g => { let c = 0; G.forEach(o => c += o.parent === g ? 1 : 0); N.forEach((n, i) => c += isOp(i) && n.home === g ? 1 : 0); for (const [, home] of uses) c += home === g ? 1 : 0; return c; };
  let count = 0;
  function unfold(g) {
    if (count + inside(g) > MOST) { told.textContent = 'More than ' + MOST + ' boxes at once are not laid out: fold something first.'; return false; }
    open.add(g); return true;
  }
  function draw() {
    const p = picture(), labels = p.seen.map(label);
    count = p.seen.length;
    const widths = labels.map(l => Math.max(60, [...l.lines[0]].length * 7.3 + 18, Math.max(...l.lines.map(t => [...t].length)) * 6.7 + 18));
    const plan = layout(widths, p.inputs);
    const w = Math.ceil(plan.width), h = Math.ceil(plan.height), out = [];
    out.push('<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="graph" viewBox="0 0 ' + w + ' ' + h + '" width="' + w * scale + '" height="' + h * scale + '" fill="currentColor" font-family="ui-monospace,SFMono-Regular,Menlo,monospace" font-size="11">');
    plan.edges.forEach(e => {
      let d = 'M' + e.points[0].map(Math.round).join(' ');
      for (let k = 1; k < e.points.length; k++) { const [x0, y0] = e.points[k - 1], [x1, y1] = e.points[k], m = Math.round((y0 + y1) / 2); d += 'C' + Math.round(x0) + ' ' + m + ' ' + Math.round(x1) + ' ' + m + ' ' + Math.round(x1) + ' ' + Math.round(y1); }
      const [x, y] = e.points[e.points.length - 1], lit = chosen !== null && (e.from === chosen || e.to === chosen);
      out.push('<path d="' + d + '" fill="none" stroke="currentColor" stroke-opacity="' + (lit ? 1 : chosen !== null ? .15 : .45) + '"' + (lit ? ' stroke-width="2"' : '') + '/><path d="M' + Math.round(x) + ' ' + Math.round(y) + 'l-3.5 -6h7z" fill-opacity=".6"/>');
    });
    plan.boxes.forEach((b, i) => {
      const l = labels[i], hit = l.node !== undefined && found.has(l.node);
      out.push('<g data-i="' + i + '" style="cursor:pointer"' + (l.group !== undefined ? ' tabindex="0" role="button"' : '') + '><title>' + esc(l.title) + '</title>');
      if (l.group !== undefined) out.push('<rect x="' + (b.x + 3) + '" y="' + (b.y + 3) + '" width="' + b.w + '" height="' + H + '" rx="5" fill="none" stroke="' + l.colour + '" stroke-opacity=".5"/>');
      out.push('<rect x="' + b.x + '" y="' + b.y + '" width="' + b.w + '" height="' + H + '" rx="5" fill="' + l.colour + '" fill-opacity="' + (hit ? .45 : i === chosen ? .35 : .16) + '" stroke="' + (hit ? '#e0a800' : l.colour) + '" stroke-width="' + (hit ? 3 : l.result ? 2.5 : 1) + '"' + (l.dashed ? ' stroke-dasharray="4 3"' : '') + '/>');
      if (l.edge) out.push('<rect x="' + b.x + '" y="' + b.y + '" width="7" height="' + H + '" rx="3" fill="' + l.edge + '"/>');
      const style = ['font-weight="bold" font-size="12"', '', 'fill-opacity=".6" font-size="10"'];
      l.lines.forEach((t, k) => { if (t) out.push('<text x="' + (b.x + b.w / 2) + '" y="' + (b.y + 16 + 14 * k) + '" text-anchor="middle" ' + style[k] + '>' + esc(t) + '</text>'); });
      out.push('</g>');
    });
    out.push('</svg>');
    stage.innerHTML = out.join('');
    stage.querySelectorAll('g[data-i]').forEach(el => {
      const i = +el.dataset.i, l = labels[i];
      const act = () => {
        if (l.group !== undefined) { chosen = null; if (unfold(l.group)) draw(); return; }
        chosen = chosen === i ? null : i; draw(); told.textContent = chosen === null ? '' : l.title;
      };
      el.onclick = act;
      el.onkeydown = e => { if (e.key === 'Enter' || e.key === ' ') { e.preventDefault(); act(); } };
    });
    chips.replaceChildren(...[...open].sort((a, b) => a - b).filter(g => { for (let p = G[g].parent; p >= 0; p = G[p].parent) if (!open.has(p)) return false; return true; }).map(g => button('▾ ' + short(G[g].path, 40), 'fold it', () => { open.delete(g); chosen = null; draw(); })));
  }
  function look() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    found = new Set(); chosen = null;
    if (words.length) N.forEach((n, i) => {
      let path = ''; for (let g = n.home; g >= 0; g = G[g].parent) path += ' ' + G[g].path;
      const text = ('%' + i + ' ' + n.op + ' ' + n.name + ' ' + n.at + ' ' + n.ty + path).toLowerCase();
      if (words.every(w => text.includes(w))) found.add(i);
    });
    let opened = 0;
    for (const i of found) {
      if (opened++ >= 50) break;
      const way = []; for (let g = isOp(i) ? N[i].home : (uses.get(i * 4) ?? -1); g >= 0; g = G[g].parent) if (!open.has(g)) way.push(g);
      if (!way.reverse().every(unfold)) break;
    }
    draw();
    told.textContent = words.length ? found.size + (found.size === 1 ? ' node' : ' nodes') + ' found' : '';
    const first = stage.querySelector('rect[stroke="#e0a800"]');
    if (first) first.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }
  let wait;
  search.oninput = () => { clearTimeout(wait); wait = setTimeout(look, 150); };
  const zoom = by => () => { scale = by ? Math.min(3, Math.max(.15, scale * by)) : 1; draw(); };
  bar.append(search, button('fold all', 'fold every group', () => { open = new Set(); chosen = null; draw(); }), button('unfold more', 'unfold one level more', () => { chosen = null; const level = G.map((g, i) => i).filter(i => !open.has(i) && (G[i].parent < 0 || open.has(G[i].parent))); level.every(unfold); draw(); }), button('−', 'smaller', zoom(1 / 1.25)), button('1:1', 'as large as text', zoom(0)), button('+', 'larger', zoom(1.25)));
  const still = root.querySelector('[data-still]');
  draw();
  still.replaceWith(bar, chips, stage, told);
})
