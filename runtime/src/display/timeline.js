// Where time went, zoomable: the wheel zooms, dragging moves. `D` is what timeline.rs wrote, `id` the output's element.
(function (id, D) {
  const root = document.getElementById(id);
  if (!root || root.dataset.alive) return;
  root.dataset.alive = '1';
  const still = root.querySelector('[data-still]'), told = document.createElement('div'), stage = document.createElement('div'), bar = document.createElement('div');
  const W = 960, LEFT = 130, ROW = 22, TOP = 22, H = TOP + D.lanes.length * ROW + 4;
  let from = 0, to = D.end || 1;
  const esc = s => String(s).replace(/[&<>"']/g, c => '&#' + c.charCodeAt(0) + ';');
  const time = us => us >= 1e6 ? (us / 1e6).toFixed(2) + ' s' : us >= 1e3 ? (us / 1e3).toFixed(2) + ' ms' : us.toFixed(1) + ' µs';
  const x = t => LEFT + (t - from) / (to - from) * (W - LEFT);
  function draw() {
    const out = ['<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="timeline" viewBox="0 0 ' + W + ' ' + H + '" style="width:100%;max-width:' + W + 'px;cursor:grab" fill="currentColor" font-family="ui-monospace,monospace" font-size="11">'];
    for (let k = 0; k <= 5; k++) { const t = from + (to - from) * k / 5; out.push('<path d="M' + x(t) + ' ' + TOP + 'V' + H + '" stroke="currentColor" stroke-opacity=".15"/><text x="' + x(t) + '" y="12" fill-opacity=".7" text-anchor="' + (k === 5 ? 'end' : k ? 'middle' : 'start') + '">' + time(t) + '</text>'); }
    D.lanes.forEach((l, i) => out.push('<text x="0" y="' + (TOP + i * ROW + 14) + '">' + esc(l) + '</text>'));
    let ends = D.lanes.map(() => -1);
    D.spans.forEach((s, i) => {
      if (s[1] + s[2] < from || s[1] > to) return;
      const a = Math.max(LEFT, x(s[1])), b = Math.min(W, x(s[1] + s[2])), w = Math.max(1, b - a);
      if (a + w <= ends[s[0]] + .3 && w <= 1) return;
      ends[s[0]] = a + w;
      out.push('<g data-i="' + i + '"><title>' + esc(s[3]) + ' · ' + time(s[2]) + '</title><rect x="' + a.toFixed(1) + '" y="' + (TOP + s[0] * ROW + 2) + '" width="' + w.toFixed(1) + '" height="' + (ROW - 5) + '" fill="' + s[4] + '" fill-opacity=".85"/>' + (w > 60 ? '<text x="' + (a + 3).toFixed(1) + '" y="' + (TOP + s[0] * ROW + 14) + '" fill="#fff">' + esc([...s[3]].slice(0, Math.floor(w / 7)).join('')) + '</text>' : '') + '</g>');
    });
    stage.innerHTML = out.join('') + '</svg>';
    stage.querySelectorAll('g[data-i]').forEach(g => g.onclick = () => { const s = D.spans[+g.dataset.i]; told.textContent = s[3] + ' · ' + time(s[2]) + ', from ' + time(s[1]); });
  }
  const clamp = (a, b) => { const n = Math.min(b - a, D.end), s = Math.min(Math.max(0, a), D.end - n); from = s; to = s + Math.max(n, .01); draw(); };
  const at = e => { const r = stage.firstChild.getBoundingClientRect(); return from + (to - from) * Math.min(1, Math.max(0, ((e.clientX - r.left) * W / r.width - LEFT) / (W - LEFT))); };
  const zoom = (t, by) => clamp(t - (t - from) * by, t + (to - t) * by);
  stage.onwheel = e => { e.preventDefault(); zoom(at(e), e.deltaY > 0 ? 1.25 : .8); };
  stage.onpointerdown = e => { const grab = at(e); const move = f => { const d = grab - at(f); clamp(from + d, to + d); }; const up = () => { window.removeEventListener('pointermove', move); window.removeEventListener('pointerup', up); }; window.addEventListener('pointermove', move); window.addEventListener('pointerup', up); };
  const button = (text, f) => { const b = document.createElement('button'); b.type = 'button'; b.textContent = text; b.style.cssText = 'font:inherit;color:inherit;background:rgba(128,128,128,.14);border:1px solid rgba(128,128,128,.4);border-radius:4px;padding:0 7px;margin-right:5px;cursor:pointer'; b.onclick = f; return b; };
  const middle = () => (from + to) / 2;
  const save = () => { const a = document.createElement('a'); a.download = 'xlazy-trace.json'; a.href = URL.createObjectURL(new Blob([JSON.stringify(D.trace())], { type: 'application/json' })); a.click(); };
  // Perfetto takes a trace from the page that opens it, and nothing leaves this one before the click.
  const perfetto = () => { const w = window.open('https://ui.perfetto.dev'); if (!w) return; const ping = setInterval(() => w.postMessage('PING', 'https://ui.perfetto.dev'), 100); const hear = e => { if (e.data !== 'PONG') return; clearInterval(ping); window.removeEventListener('message', hear); w.postMessage({ perfetto: { buffer: new TextEncoder().encode(JSON.stringify(D.trace())).buffer, title: 'xlazy' } }, 'https://ui.perfetto.dev'); }; window.addEventListener('message', hear); };
  D.trace = () => ({ displayTimeUnit: 'ms', traceEvents: D.lanes.map((l, i) => ({ ph: 'M', pid: 1, tid: i + 1, name: 'thread_name', args: { name: l } })).concat(D.spans.map(s => ({ ph: 'X', pid: 1, tid: s[0] + 1, ts: s[1], dur: s[2], name: s[3], cat: D.lanes[s[0]] }))) });
  bar.style.cssText = 'font-size:.85em;margin:4px 0'; told.style.cssText = 'font-size:.85em;min-height:1.4em;opacity:.85';
  bar.append(button('+', () => zoom(middle(), .5)), button('−', () => zoom(middle(), 2)), button('all', () => clamp(0, D.end)), button('save the trace', save), button('open in Perfetto', perfetto));
  draw();
  still.replaceWith(bar, stage, told);
})
