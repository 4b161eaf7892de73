//! Drawing programs: the same for a seed in every run.
use super::program::{Data, Helper, Input, Kind, Op, Program, Spec, Stmt, Train};
use super::support::Seeded;

/// The width of everything but what an op makes wider for the next.
const D: usize = 8;

struct Draw {
    r: Seeded,
    layers: Vec<(usize, Spec)>,
    attrs: Vec<(i64, i64)>,
    rounds: Vec<usize>,
    conditions: usize,
    regions: usize,
    trains: bool,
    auxes: usize,
    times: usize,
    inputs: Vec<Input>,
    helpers: Vec<(Kind, Helper)>,
    kind: Kind,
    /// Only a part of the time is left, or some is taken next.
    taken: bool,
}

pub fn draw(seed: u64) -> Program {
    let r = Seeded(seed.wrapping_mul(0x5851_f42d_4c95_7f2d));
    let mut d = Draw {
        r,
        layers: vec![],
        attrs: vec![],
        rounds: vec![],
        conditions: 0,
        regions: 0,
        trains: false,
        auxes: 0,
        times: 0,
        inputs: vec![],
        helpers: vec![],
        kind: Kind::Flat,
        taken: false,
    };
    d.program()
}

impl Draw {
    fn chance(&mut self, percent: usize) -> bool {
        self.r.below(100) < percent
    }

    fn attr(&mut self, value: i64, other: i64) -> usize {
        self.attrs.push((value, other));
        self.attrs.len() - 1
    }

    fn layer(&mut self, spec: Spec) -> Op {
        self.layers.push((0, spec));
        Op::Layer(self.layers.len() - 1)
    }

    fn input(&mut self, data: Data) -> usize {
        self.inputs.push(Input { at: 0, evaluated_at: 0, data });
        self.inputs.len() - 1
    }

    fn program(&mut self) -> Program {
        let trains = self.chance(60);
        self.trains = trains;
        let mut model = Vec::new();
        self.start(&mut model);
        let helpers = self.r.below(3);
        for _ in 0..helpers {
            let mut body = self.block(1, 3, false);
            // A helper of a helper.
            if !self.helpers.is_empty() && self.chance(40) {
                let helper = self.r.below(self.helpers.len());
                body.insert(self.r.below(body.len() + 1), Stmt::Call { at: 0, helper });
            }
            self.helpers.push((self.kind, Helper { at: 0, body }));
        }
        let main = self.block(3, 8, true);
        model.extend(main);
        self.flatten(&mut model);
        let classes = trains && self.chance(50);
        let head = self.layer(Spec::Linear(D, 3));
        model.push(Stmt::Op { at: 0, op: head, beside: false });
        let reduction = if classes { 1 } else { 1 + self.r.below(2) as i64 };
        let loss = self.attr(0, reduction);
        let loss = if classes { Op::CrossEntropy(loss) } else { Op::Loss(loss) };
        if classes {
            self.input(Data::Targets);
        }
        let optimizer = self.r.below(3) as u8;
        let second = self.chance(35);
        let (ema, micro) = (self.chance(20), if self.chance(25) { 2 } else { 1 });
        Program {
            inputs: std::mem::take(&mut self.inputs),
            layers: std::mem::take(&mut self.layers),
            helpers: std::mem::take(&mut self.helpers).into_iter().map(|h| h.1).collect(),
            model,
            attrs: std::mem::take(&mut self.attrs),
            rounds: std::mem::take(&mut self.rounds),
            conditions: self.conditions,
            regions: self.regions,
            auxes: self.auxes,
            times: self.times,
            train: Train {
                on: trains,
                optimizer,
                second: trains && second,
                ema: trains && ema,
                clips: trains && self.r.below(3) == 0,
                micro: if trains { micro } else { 1 },
            },
            loss,
            state: !trains && self.chance(40),
            evaluates: self.chance(35).then(|| self.chance(50)),
            reads_loss: self.chance(50),
            places: Default::default(),
        }
    }

    /// The first input, and what makes features of it.
    fn start(&mut self, model: &mut Vec<Stmt>) {
        let mut put = |op| model.push(Stmt::Op { at: 0, op, beside: false });
        match self.r.below(4) {
            0 => {
                self.kind = Kind::Flat;
                self.input(Data::Flat(5));
                if self.chance(30) {
                    put(Op::Float);
                }
                put(self.layer(Spec::Linear(5, D)));
            }
            1 => {
                self.kind = Kind::Seq;
                self.input(Data::Seq(6));
                put(self.layer(Spec::Linear(6, D)));
            }
            2 => {
                self.kind = Kind::Seq;
                self.input(Data::Ids);
                put(self.layer(Spec::Embedding(20, D)));
            }
            _ => {
                self.kind = Kind::Img;
                self.input(Data::Img(3));
                put(self.layer(Spec::Conv(3, D)));
            }
        }
    }

    fn flatten(&mut self, model: &mut Vec<Stmt>) {
        let first = self.chance(50);
        let op = match self.kind {
            Kind::Flat => return,
            Kind::Seq if first => Op::Select(self.attr(0, 2)),
            Kind::Seq => Op::MeanTime,
            Kind::Img => Op::MeanSpace,
        };
        self.kind = Kind::Flat;
        model.push(Stmt::Op { at: 0, op, beside: false });
    }

    fn block(&mut self, low: usize, high: usize, outer: bool) -> Vec<Stmt> {
        let n = low + self.r.below(high - low + 1);
        let mut body = Vec::new();
        for _ in 0..n {
            self.statement(&mut body, outer);
        }
        body
    }

    fn statement(&mut self, body: &mut Vec<Stmt>, outer: bool) {
        if outer {
            match self.r.below(20) {
                0..=2 => return body.push(self.looped(true)),
                3 | 4 => {
                    let (then, other) =
                        (self.block(1, 2, false), if self.chance(50) { self.block(1, 2, false) } else { vec![] });
                    let id = self.conditions;
                    self.conditions += 1;
                    return body.push(Stmt::If { at: 0, id, then, other });
                }
                5 | 6 => return body.push(self.join()),
                11 | 12 if self.trains && self.regions == 0 => {
                    let inside = self.block(1, 3, false);
                    self.regions += 1;
                    return body.push(Stmt::Region { at: 0, id: self.regions - 1, body: inside });
                }
                7 | 8 if self.auxes < 2 => return body.push(self.aux()),
                9 | 10 => {
                    let fits = |h: &(Kind, Helper)| h.0 == self.kind;
                    if let Some(helper) = self.helpers.iter().position(fits) {
                        return body.push(Stmt::Call { at: 0, helper });
                    }
                }
                _ => {}
            }
        }
        if self.chance(20) {
            let taken = std::mem::replace(&mut self.taken, true);
            let inner = (0..1 + self.r.below(2)).flat_map(|_| self.ops()).collect::<Vec<_>>();
            self.taken = taken;
            return body.push(Stmt::Residual { at: 0, body: chained(inner, false) });
        }
        let chain = self.chance(40);
        let ops = self.ops();
        body.extend(chained(ops, chain));
    }

    /// A loop; an `outer` one may have another inside.
    fn looped(&mut self, outer: bool) -> Stmt {
        let first = self.layers.len();
        let nests = outer && self.chance(35);
        let mut body = Vec::new();
        let mut ops = vec![self.weighted()];
        ops.push(Op::Unary(self.r.below(8) as u8));
        match self.chance(50) {
            true => body.push(Stmt::Residual { at: 0, body: chained(ops, false) }),
            false => body.extend(chained(ops, false)),
        }
        let fits = |h: &(Kind, Helper)| h.0 == self.kind;
        if let Some(helper) = self.helpers.iter().position(fits).filter(|_| self.r.below(4) == 0) {
            body.push(Stmt::Call { at: 0, helper });
        }
        // The same layers in each round, or each round its own.
        let recurs = self.chance(30);
        if nests {
            let inside = if recurs { self.looped(false) } else { self.plain_loop() };
            body.insert(self.r.below(body.len() + 1), inside);
        }
        let stride = if recurs { 0 } else { self.layers.len() - first };
        let rounds = 2 + self.r.below(3);
        let specs: Vec<(usize, Spec)> = self.layers[first..][..stride].to_vec();
        // One layer more than it has at first.
        for _ in 0..rounds {
            self.layers.extend(specs.iter().cloned());
        }
        self.rounds.push(rounds);
        Stmt::Loop { at: 0, skip_at: 0, id: self.rounds.len() - 1, first, stride, body }
    }

    /// Rounds without layers.
    fn plain_loop(&mut self) -> Stmt {
        let ops = (0..1 + self.r.below(2)).map(|_| Op::Unary(self.r.below(8) as u8)).collect();
        self.rounds.push(2 + self.r.below(2));
        let body = chained(ops, false);
        Stmt::Loop { at: 0, skip_at: 0, id: self.rounds.len() - 1, first: 0, stride: 0, body }
    }

    fn join(&mut self) -> Stmt {
        let alike = self.chance(40);
        let data = match self.kind {
            Kind::Flat if alike => Data::Flat(D),
            Kind::Seq if alike && !self.taken => Data::Seq(D),
            _ => Data::Context(4),
        };
        let input = self.input(data);
        Stmt::Join { at: 0, input, context: matches!(data, Data::Context(_)) }
    }

    fn aux(&mut self) -> Stmt {
        let op = [Op::Mean, Op::Norm, Op::Max][self.r.below(3)].clone();
        self.auxes += 1;
        Stmt::Aux { at: 0, guard_at: 0, read_at: 0, keep_at: 0, id: self.auxes - 1, op }
    }

    /// An op with weights that keeps the kind and the width.
    fn weighted(&mut self) -> Op {
        match (self.kind, self.r.below(3)) {
            (Kind::Img, 0) => self.layer(Spec::BatchNorm(D)),
            (Kind::Img, _) => self.layer(Spec::Conv(D, D)),
            (_, 0) => self.layer(Spec::Norm(D)),
            _ => self.layer(Spec::Linear(D, D)),
        }
    }

    /// One op, or several that belong together, which keep the kind and the width.
    fn ops(&mut self) -> Vec<Op> {
        let n = self.r.below(28);
        let dims = if self.kind == Kind::Seq { 3 } else { 2 };
        let last = dims - 1;
        match (n, self.kind) {
            (0..=3, _) => vec![self.weighted()],
            (4..=7, _) => vec![Op::Unary(self.r.below(8) as u8)],
            (8, _) => vec![Op::Scale],
            (9, _) => vec![Op::Shift],
            (10, _) => {
                self.times += 1;
                vec![Op::Times(self.times - 1)]
            }
            (11, _) => vec![self.layer(Spec::Dropout)],
            (12, _) => vec![Op::Threshold(self.attr(0, 1))],
            (13, Kind::Img) => vec![Op::Unary(1), Op::Unary(0)],
            (13, _) => vec![Op::Narrow(self.attr(0, 2), 5), self.layer(Spec::Linear(5, D))],
            (14, Kind::Img) => vec![self.layer(Spec::Dropout)],
            (14, _) => vec![Op::Pad(self.attr(0, 2)), self.layer(Spec::Linear(D + 1, D))],
            (15, _) => vec![Op::Roll(self.attr(1, 2))],
            (16, Kind::Img) => vec![Op::Flip(self.attr(2, 3))],
            (16, _) => vec![Op::Flip(self.attr(last, 0))],
            (17, _) if self.chance(30) => vec![Op::Spread(self.attr(1, 0))],
            (17, Kind::Img) => vec![Op::Center(self.attr(2, 1))],
            (17, _) => vec![Op::Center(self.attr(last, 0))],
            (18, _) if self.chance(30) => vec![Op::Peak(self.attr(1, 0))],
            (18, Kind::Img) => vec![Op::Softmax(self.attr(1, 2))],
            (18, _) => vec![Op::Softmax(self.attr(last, 0))],
            (19, Kind::Seq) => vec![Op::Attend],
            (20, Kind::Seq) => vec![Op::Positions],
            (21, Kind::Seq) if !self.taken => {
                self.taken = true;
                vec![Op::Take(self.attr(5, 4))]
            }
            (19 | 20, Kind::Flat) => vec![Op::Cumsum(self.attr(last, 0))],
            (22, _) => vec![Op::Gelu(self.attr(0, 1))],
            (24, _) => vec![Op::Tril(self.attr(0, 1))],
            (25, Kind::Img) => vec![Op::Tril(self.attr(1, -1))],
            (25, _) => vec![Op::Part(self.attr(1, 3), 4), self.layer(Spec::Linear(4, D))],
            (26 | 27, _) => vec![Op::Start(self.attr(0, 1))],
            (23, _) => vec![Op::Sort(self.attr(0, 1))],
            (21, Kind::Flat) => vec![Op::Twice, self.layer(Spec::Linear(2 * D, D))],
            (_, _) => vec![Op::Cumsum(self.attr(1, 0))],
        }
    }
}

/// Ops as statements, those after the first beside it where `chain`.
fn chained(ops: Vec<Op>, chain: bool) -> Vec<Stmt> {
    ops.into_iter().enumerate().map(|(i, op)| Stmt::Op { at: 0, op, beside: chain && i > 0 }).collect()
}
