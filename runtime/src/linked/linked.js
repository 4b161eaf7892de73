// The four forms of one program: pointing at a row lights up what belongs to it. `D` holds the ops of each row, `id` the output's element.
(function (id, D) {
  const root = document.getElementById(id);
  if (!root || root.classList.contains('alive')) return;
  root.classList.add('alive');
  const how = root.querySelector('.how');
  how.textContent = how.dataset.told;
  const columns = [...root.querySelectorAll('.c')];
  const row = (c, r) => document.getElementById(id + '-' + c + '-' + r);
  // The rows of each op.
  const of = new Map();
  D.forEach((rows, c) => rows.forEach((ops, r) => ops.forEach(op => {
    if (!of.has(op)) of.set(op, []);
    of.get(op).push([c, r]);
  })));
  let lit = [], kept = null;

  function light(at, reveal) {
    lit.forEach(el => el.classList.remove('on', 'at'));
    lit = [];
    if (!at) return;
    const first = new Map();
    for (const op of D[at[0]][at[1]]) for (const [c, r] of of.get(op)) {
      const el = row(c, r);
      if (!el.classList.contains('on')) { el.classList.add('on'); lit.push(el); }
      if (!first.has(c) || r < first.get(c)) first.set(c, r);
    }
    const self = row(at[0], at[1]);
    if (!self.classList.contains('on')) { self.classList.add('on'); lit.push(self); }
    self.classList.add('at');
    if (!reveal) return;
    for (const [c, r] of first) {
      const el = c === at[0] ? self : row(c, r), box = columns[c];
      const top = el.offsetTop - box.offsetTop, seen = top >= box.scrollTop && top + el.offsetHeight <= box.scrollTop + box.clientHeight;
      if (!seen) box.scrollTop = top - box.clientHeight / 3;
    }
  }
  function place(target) {
    const el = target.closest && target.closest('.r');
    if (!el || !root.contains(el)) return null;
    return el.id.slice(id.length + 1).split('-').map(Number);
  }
  columns.forEach((box, c) => {
    box.style.position = 'static';
    box.addEventListener('mouseover', e => { if (!kept) light(place(e.target)); });
    box.addEventListener('mouseleave', () => { if (!kept) light(null); });
    box.addEventListener('click', e => {
      const at = place(e.target);
      kept = kept && at && kept[0] === at[0] && kept[1] === at[1] ? null : at;
      light(at, true);
    });
    box.addEventListener('keydown', e => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
      if (e.key === 'Escape') { kept = null; light(null); }
      if (!step) return;
      let r = kept && kept[0] === c ? kept[1] + step : 0;
      while (D[c][r] && !D[c][r].length) r += step;
      if (!D[c][r]) return;
      e.preventDefault();
      kept = [c, r];
      light(kept, true);
    });
  });
  root.querySelectorAll('svg [data-ops]').forEach(el => {
    const [c, r] = el.dataset.ops.split('-').map(Number);
    // A long program's column ends before it.
    if (!D[c] || !D[c][r]) return;
    el.addEventListener('mouseover', () => { if (!kept) light([c, r]); });
    el.addEventListener('mouseleave', () => { if (!kept) light(null); });
    el.addEventListener('click', () => { kept = [c, r]; light(kept, true); });
  });
})
