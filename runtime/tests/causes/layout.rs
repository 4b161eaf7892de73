//! A drawn program as text, and where each statement stands in it: a line of text is a row of places.
use super::mutate::row;
use super::places::{COLUMNS, places};
use super::program::{Data, Helper, Op, Program, Spec, Stmt};
use std::ops::Range;
use std::panic::Location;
use xlazy_core::text::{self, Branch, Call, Condition, Facts, Function, Goes, Guard, Loop, LoopKind, Terms};

/// The text of a program; row 0 is the first line.
pub struct Text {
    pub rows: Vec<String>,
    /// Places used in the last row.
    used: usize,
    depth: usize,
    /// Rows of each function, condition (with what it guards) and loop: what a kernel would know of the source.
    pub functions: Vec<(String, usize, usize)>,
    pub conditions: Vec<(usize, usize)>,
    pub loops: Vec<(usize, usize)>,
    /// Rows of what the model does, with its helpers, and of the step.
    pub model: Range<usize>,
    pub step: Range<usize>,
}

impl Text {
    /// A line more; its first place.
    fn line(&mut self, text: &str) -> usize {
        self.rows.push(format!("{}{text}", "    ".repeat(self.depth)));
        self.used = 1;
        (self.rows.len() - 1) * COLUMNS
    }

    /// Goes on in the same line, where there is room.
    fn beside(&mut self, text: &str) -> usize {
        if self.used == COLUMNS {
            return self.line(&format!("x = x{text};"));
        }
        let last = self.rows.last_mut().expect("a line");
        let cut = last.trim_end_matches(';').len();
        last.truncate(cut);
        *last += &format!("{text};");
        self.used += 1;
        (self.rows.len() - 1) * COLUMNS + self.used - 1
    }

    /// A line that a condition guards: the places of the condition and of the line.
    fn guarded(&mut self, condition: &str, text: &str) -> (usize, usize) {
        let guard = self.line(&format!("if {condition} {{"));
        let mut place = 0;
        self.inside(|t| place = t.line(text));
        self.line("}");
        self.conditions.push((guard / COLUMNS, self.rows.len()));
        (guard, place)
    }

    fn inside(&mut self, f: impl FnOnce(&mut Text)) -> (usize, usize) {
        let first = self.rows.len();
        self.depth += 1;
        f(self);
        self.depth -= 1;
        (first, self.rows.len())
    }
}

impl Text {
    /// Tells the runtime what a kernel would of this text: its lines, functions, loops, conditions and calls.
    pub fn register(&self) {
        places(0).into_iter().enumerate().for_each(|(copy, first)| self.register_as(copy, first));
    }

    /// The text, or its copy, as a cell of its own.
    fn register_as(&self, copy: usize, first: &Location<'static>) {
        let (file, first, cell) = (first.file(), first.line(), copy as u64 + 1);
        // No two lines are alike, as those of a program hardly are.
        let lines: Vec<String> = self.rows.iter().enumerate().map(|(i, row)| format!("{row} // {i}")).collect();
        text::register_lines(file, cell, &[(first, 1, 1)]);
        text::keep(cell, &lines.join("\n"));
        let line = |row: usize| first + row as u32;
        let rows = |from: usize, to: usize| (line(from), 1)..(line(to), 1);
        let one = |row: usize| (line(row), 1)..(line(row), u32::MAX);
        let mut facts = Facts::default();
        for (name, from, to) in &self.functions {
            facts.functions.push(Function { name: name.clone(), of: None, closure: false, range: rows(*from, *to) });
        }
        for &(from, to) in &self.loops {
            facts.loops.push(Loop { kind: LoopKind::For, head: one(from), body: rows(from + 1, to), changes: vec![] });
        }
        for &(row, end) in &self.conditions {
            let text = &self.rows[row];
            let made = || Terms { names: vec![], calls: text.contains("coin("), reads: false };
            facts.conditions.push(Condition { at: one(row), guards: rows(row + 1, end), made: made() });
            let guard = |guarded, branch| Guard { condition: one(row), guarded, branch, made: made() };
            let other = (row + 1..end).find(|&r| self.rows[r] == format!("{}}} else {{", indent(text)));
            match other {
                _ if text.contains("continue") => facts.guards.push(guard(rows(row + 1, end), Branch::Rest)),
                Some(other) => {
                    facts.guards.push(guard(rows(row + 1, other), Branch::Then));
                    facts.guards.push(guard(rows(other + 1, end), Branch::Else));
                }
                None => facts.guards.push(guard(rows(row, end), Branch::Then)),
            }
        }
        for (row, text) in self.rows.iter().enumerate() {
            let mut call = |name: &str, goes: Goes| {
                let columns = (0..COLUMNS).map(|k| places(row * COLUMNS + k)[copy].column());
                let calls = columns.map(|c| Call { at: (line(row), c), name: name.into(), goes: goes.clone() });
                facts.calls.extend(calls);
            };
            if text.contains(".item()") {
                call("item", Goes::Into(vec![]));
            }
            for (name, ..) in &self.functions {
                if text.contains(&format!("{name}(")) && !text.contains("fn ") {
                    call(name, Goes::Out);
                }
            }
        }
        text::register_facts(file, facts);
    }
}

fn indent(row: &str) -> &str {
    &row[..row.len() - row.trim_start().len()]
}

/// Gives everything in the program its place.
pub fn layout(p: &mut Program) -> Text {
    let mut t = Text {
        rows: vec![],
        used: 0,
        depth: 0,
        functions: vec![],
        conditions: vec![],
        loops: vec![],
        model: 0..0,
        step: 0..0,
    };
    let specs: Vec<Spec> = p.layers.iter().map(|l| l.1.clone()).collect();
    for (i, (at, spec)) in p.layers.iter_mut().enumerate() {
        *at = t.line(&format!("let l{i} = {};", made(spec)));
    }
    if p.trains() {
        let name = ["SGD::new(", "SGD::with(momentum, ", "Adam::new("][p.train.optimizer as usize];
        p.places.optimizer = t.line(&format!("let mut opt = optim::{name}parameters);"));
        if p.train.second {
            p.places.second = t.line(&format!("let mut second = optim::{name}of_the_rest);"));
        }
        if p.train.ema {
            p.places.shadow = t.line("let shadow = parameters.iter().map(|p| p.detach().copy());");
        }
    }
    if p.times > 0 {
        p.places.scale = t.line("let scale = Tensor::from_vec(vec![0.25], ());");
    }
    if p.state {
        p.places.state = t.line("let state = Tensor::zeros([8, 3]);");
    }
    let first = t.rows.len();
    let mut helpers = std::mem::take(&mut p.helpers);
    for (i, Helper { at, body }) in helpers.iter_mut().enumerate() {
        *at = t.line(&format!("fn helper{i}(x: Tensor) -> Tensor {{"));
        let rows = t.inside(|t| statements(body, &specs, t));
        t.functions.push((format!("helper{i}"), rows.0, rows.1));
        t.line("}");
    }
    p.helpers = helpers;
    t.line("fn model(x: Tensor, inputs: …) -> Tensor {");
    let mut model = std::mem::take(&mut p.model);
    let rows = t.inside(|t| statements(&mut model, &specs, t));
    t.functions.push(("model".into(), rows.0, rows.1));
    p.model = model;
    t.line("}");
    t.model = first..t.rows.len();
    step(p, &mut t);
    t.step = row(p.places.call)..row(p.places.read) + 1;
    if let Some(barrier) = p.evaluates {
        evaluation(p, barrier, &mut t);
    }
    let pl = &mut p.places;
    pl.freeze = t.line("for p in layer.parameters() { p.requires_grad_(…); }");
    pl.init = t.line("for p in parameters { p.normal_(0.0, 0.02) or p.uniform_(-0.1, 0.1); }");
    pl.init_sync = t.line("sync();");
    pl.mode = t.line("model.train(…);");
    pl.precision = t.line("set_mat_mul_precision(…);");
    pl.moves = t.line("model.to(device);");
    pl.validation = t.line("let validation = Tensor::from_vec(…);");
    pl.leftover = t.line("let left = validation.tanh();");
    pl.other = t.line("let other = Tensor::zeros([31]);");
    pl.other_sync = t.line("sync();");
    t
}

fn step(p: &mut Program, t: &mut Text) {
    t.line("fn step() {");
    let trains = p.trains();
    let rows = t.inside(|t| {
        let first = t.rows.len();
        if p.train.micro > 1 {
            p.places.micro = t.line(&format!("for _ in 0..{} {{", p.train.micro));
            t.depth += 1;
        }
        for (i, input) in p.inputs.iter_mut().enumerate() {
            let what = match input.data {
                Data::Flat(d) => format!("[batch, {d}]"),
                Data::Seq(d) => format!("[batch, time, {d}]"),
                Data::Ids => "[batch, time] of ids".into(),
                Data::Img(c) => format!("[batch, {c}, size, size]"),
                Data::Context(d) => format!("[rows, {d}]"),
                Data::Targets => "[batch] of classes".into(),
            };
            input.at = t.line(&format!("let i{i} = Tensor::from_vec(…, {what});"));
        }
        p.places.alias = t.line("let x = i0;");
        p.places.call = t.line("let y = model(x, …);");
        if trains {
            p.places.loss = t.line(&format!("let loss = y{};", shown(&p.loss, &[])));
            p.places.backward = t.line("loss.backward();");
        }
        if p.train.micro > 1 {
            (p.places.between_guard, p.places.between) = t.guarded("evaluates", "sync();");
            t.depth -= 1;
            t.line("}");
            t.loops.push((first, t.rows.len()));
        }
        if p.train.clips {
            (p.places.clip_guard, p.places.clip) = t.guarded("clips", "clip_grad_norm_(&parameters, 1.0);");
        }
        if trains {
            p.places.step = t.line("opt.step();");
            if p.train.second {
                (p.places.second_guard, p.places.second_step) = t.guarded("both", "second.step();");
            }
            if p.train.ema {
                p.places.ema = t.line("for (s, p) in shadow { s.copy_(p.lerp(s, decay)); }");
            }
        }
        if p.state {
            (p.places.hold_guard, p.places.hold) =
                t.guarded("keeps", "held.push(Tensor::zeros(state.shape()).copy_(&state));");
            p.places.assign = t.line("state.copy_(state + y);");
        }
        p.places.history = t.line("history = cat([history, y]);");
        p.places.barrier = t.line("sync();");
        p.places.read = t.line("println!(\"{}\", loss.item());");
    });
    t.functions.push(("step".into(), rows.0, rows.1));
    t.line("}");
}

fn evaluation(p: &mut Program, barrier: bool, t: &mut Text) {
    t.line("fn evaluate() {");
    let rows = t.inside(|t| {
        for (i, input) in p.inputs.iter_mut().enumerate() {
            input.evaluated_at = t.line(&format!("let i{i} = Tensor::from_vec(…);"));
        }
        p.places.evaluate = t.line("let y = no_grad(|| model(i0, …));");
        p.places.accuracy = t.line("let accuracy = y.mean();");
        if barrier {
            p.places.evaluated = t.line("sync();");
        }
        p.places.accuracy_read = t.line("println!(\"{}\", accuracy.item());");
    });
    t.functions.push(("evaluate".into(), rows.0, rows.1));
    t.line("}");
}

fn statements(body: &mut [Stmt], specs: &[Spec], t: &mut Text) {
    for s in body {
        match s {
            Stmt::Op { at, op, beside } => {
                let call = shown(op, specs);
                *at = if *beside { t.beside(&call) } else { t.line(&format!("x = x{call};")) };
            }
            Stmt::Residual { at, body } => {
                t.line("let skip = x.clone();");
                statements(body, specs, t);
                *at = t.line("x = skip + x;");
            }
            Stmt::Call { at, helper } => *at = t.line(&format!("x = helper{helper}(x);")),
            Stmt::Region { at, id, body } => {
                *at = t.line(&format!("x = region{id}(off, || {{"));
                t.inside(|t| statements(body, specs, t));
                t.line("});");
            }
            Stmt::Loop { at, skip_at, body, .. } => {
                *at = t.line("for l in layers {");
                let rows = t.inside(|t| {
                    *skip_at = t.line("if coin() { continue; }");
                    statements(body, specs, t);
                });
                t.line("}");
                t.conditions.push((rows.0, rows.1));
                t.loops.push((rows.0 - 1, rows.1 + 1));
            }
            Stmt::If { at, id, then, other } => {
                *at = t.line(&format!("if condition{id} {{"));
                let rows = t.inside(|t| statements(then, specs, t));
                t.line("} else {");
                t.inside(|t| statements(other, specs, t));
                t.line("}");
                t.conditions.push((rows.0 - 1, t.rows.len()));
            }
            Stmt::Join { at, input, context: false } => *at = t.line(&format!("x = x + i{input};")),
            Stmt::Join { at, input, context: true } => *at = t.line(&format!("x = x + i{input}.tanh().mean();")),
            Stmt::Aux { at, guard_at, read_at, keep_at, id, op } => {
                *at = t.line(&format!("let aux{id} = x{};", shown(op, specs)));
                let read = format!("println!(\"{{}}\", aux{id}.item());");
                (*guard_at, *read_at) = t.guarded(&format!("logs{id}"), &read);
                *keep_at = t.line(&format!("if keeps{id} {{ kept.push(aux{id}); }}"));
                t.conditions.push((*keep_at / COLUMNS, t.rows.len()));
            }
        }
    }
}

fn made(spec: &Spec) -> String {
    match spec {
        Spec::Linear(from, to) => format!("nn::Linear::new({from}, {to})"),
        Spec::Norm(d) => format!("nn::LayerNorm::new([{d}])"),
        Spec::Embedding(n, d) => format!("nn::Embedding::new({n}, {d})"),
        Spec::Conv(from, to) => format!("nn::Conv2d::new({from}, {to}, 3)"),
        Spec::BatchNorm(d) => format!("nn::BatchNorm2d::new({d})"),
        Spec::Dropout => "nn::Dropout::new(0.1)".into(),
    }
}

fn shown(op: &Op, specs: &[Spec]) -> String {
    match op {
        Op::Layer(l) => format!(".forward(l{l} = {})", specs.get(*l).map(made).unwrap_or_default()),
        other => format!(".{}", format!("{other:?}").to_lowercase()),
    }
}
