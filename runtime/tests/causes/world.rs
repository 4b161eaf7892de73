//! Running a drawn program: its layers and state, what the step's variables say, and the step itself.
use super::act::{Act, Out, Trainer, With};
use super::places::at;
use super::program::{Data, Layer, Op, Program, Stmt};
use xlazy::prelude::*;

/// What the variables of the program say: a mutation changes them.
#[derive(Clone)]
pub struct Knobs {
    pub batch: usize,
    pub time: usize,
    pub side: usize,
    /// Rows of each input that has its own.
    pub rows: Vec<usize>,
    /// Inputs that have a dimension more in front.
    pub deeper: Vec<bool>,
    pub dtypes: Vec<Option<DType>>,
    pub attrs: Vec<i64>,
    pub rounds: Vec<usize>,
    pub conditions: Vec<bool>,
    /// Regions that record no gradients.
    pub regions: Vec<bool>,
    /// The parameters are drawn anew before the step, one way or another.
    pub init: Option<bool>,
    /// The second optimizer steps.
    pub second: bool,
    /// The round of each loop that is left out.
    pub skips: Vec<Option<usize>>,
    pub reads: Vec<bool>,
    pub keeps: Vec<bool>,
    /// Factors that are numbers and not tensors.
    pub numbers: Vec<bool>,
    pub micro: usize,
    /// A barrier between the micro-batches.
    pub between: bool,
    /// Inputs that are another input.
    pub same: Option<(usize, usize)>,
    pub swapped: Option<(usize, usize)>,
    pub device: &'static str,
    pub holds: bool,
    pub clips: bool,
    pub grows: bool,
}

impl Knobs {
    pub fn of(p: &Program) -> Knobs {
        let n = p.inputs.len();
        Knobs {
            batch: 4,
            time: 8,
            side: 8,
            rows: (0..n).map(|i| 5 + i).collect(),
            deeper: vec![false; n],
            dtypes: vec![None; n],
            attrs: p.attrs.iter().map(|a| a.0).collect(),
            rounds: p.rounds.clone(),
            conditions: vec![true; p.conditions],
            regions: vec![false; p.regions],
            init: None,
            second: true,
            skips: vec![None; p.rounds.len()],
            reads: vec![false; p.auxes],
            keeps: vec![false; p.auxes],
            numbers: vec![false; p.times],
            micro: p.train.micro,
            between: false,
            same: None,
            swapped: None,
            device: "cpu:0",
            holds: false,
            clips: false,
            grows: false,
        }
    }

    /// The type of an input.
    pub fn input(&self, p: &Program, i: usize) -> (Vec<usize>, DType) {
        let dtype = |usual| self.dtypes[i].unwrap_or(usual);
        match p.inputs[i].data {
            Data::Flat(d) => (vec![self.batch, d], dtype(F32)),
            Data::Seq(d) => (vec![self.batch, self.time, d], dtype(F32)),
            Data::Ids => (vec![self.batch, self.time], dtype(I64)),
            Data::Img(c) => (vec![self.batch, c, self.side, self.side], dtype(F32)),
            Data::Context(d) if self.deeper[i] => (vec![2, self.rows[i], d], dtype(F32)),
            Data::Context(d) => (vec![self.rows[i], d], dtype(F32)),
            Data::Targets => (vec![self.batch], dtype(I64)),
        }
    }
}

/// What a program keeps between its steps.
pub struct World<'p> {
    pub p: &'p Program,
    pub layers: Vec<Layer>,
    pub parameters: Vec<Tensor>,
    trainers: Vec<Trainer>,
    shadow: Vec<Tensor>,
    scale: Option<Tensor>,
    state: Option<Tensor>,
    held: Vec<Tensor>,
    history: Option<Tensor>,
    /// Work that another function leaves pending.
    pub left: Option<Tensor>,
}

impl<'p> World<'p> {
    pub fn new(p: &'p Program) -> World<'p> {
        let layer = |(place, spec): &(usize, _)| match at(*place, Act::Make(spec)) {
            Out::Layer(layer) => layer,
            _ => unreachable!("a layer was asked for"),
        };
        let layers: Vec<Layer> = p.layers.iter().map(layer).collect();
        let parameters: Vec<Tensor> = layers.iter().flat_map(|l| l.module().parameters()).collect();
        if !p.trains() {
            for t in &parameters {
                t.requires_grad_(false);
            }
        }
        let (mut trainers, mut shadow) = (vec![], vec![]);
        if p.trains() {
            let half = if p.train.second { parameters.len() / 2 } else { parameters.len() };
            let (first, second) = parameters.split_at(half);
            for (place, all) in [(p.places.optimizer, first), (p.places.second, second)] {
                if !all.is_empty()
                    && let Out::Trainer(t) = at(place, Act::Optimizer(all, p.train.optimizer))
                {
                    trainers.push(t);
                }
            }
            if p.train.ema
                && let Out::Tensors(copies) = at(p.places.shadow, Act::Copies(&parameters))
            {
                shadow = copies;
            }
        }
        let scale = (p.times > 0).then(|| at(p.places.scale, Act::Data(&[], F32)).tensor());
        let state = p.state.then(|| at(p.places.state, Act::Zeros(&[4, 3])).tensor());
        sync();
        World { p, layers, parameters, trainers, shadow, scale, state, held: vec![], history: None, left: None }
    }

    /// One step.
    pub fn step(&mut self, k: &Knobs) {
        let (p, mut kept, mut last) = (self.p, Vec::new(), None);
        if let Some(uniform) = k.init {
            no_grad(|| at(p.places.init, Act::Init(&self.parameters, uniform)));
            at(p.places.init_sync, Act::Sync);
        }
        for t in &self.trainers {
            match t {
                Trainer::Sgd(o) => o.zero_grad(),
                Trainer::Adam(o) => o.zero_grad(),
            }
        }
        for _ in 0..k.micro {
            let inputs = self.inputs(k, |i| p.inputs[i].at);
            let y = self.run(&p.model, inputs[0].clone(), k, &inputs, (usize::MAX, 0, 0), &mut kept);
            if p.trains() {
                let attr = p.loss.attr().map_or(0, |a| k.attrs[a]);
                let targets = p.inputs.iter().position(|i| i.data == Data::Targets);
                let with = With { attr, other: targets.map(|t| &inputs[t]), layer: None };
                let loss = at(p.places.loss, Act::Op(&p.loss, &y, with)).tensor();
                at(p.places.backward, Act::Backward(&loss));
                last = Some(loss);
            } else {
                last = Some(y);
            }
            if k.between {
                at(p.places.between, Act::Sync);
            }
        }
        if k.clips {
            at(p.places.clip, Act::Clip(&self.parameters));
        }
        let steps = [Some(p.places.step), k.second.then_some(p.places.second_step)];
        for (t, place) in self.trainers.iter_mut().zip(steps) {
            place.map(|place| at(place, Act::Step(t)));
        }
        if p.train.ema {
            no_grad(|| at(p.places.ema, Act::Ema(&self.shadow, &self.parameters)));
        }
        if let (Some(state), Some(y)) = (&self.state, &last) {
            self.held.clear();
            if k.holds {
                // The same buffer; a view would follow what is written to `state`.
                self.held.push(Tensor::zeros(state.shape()).copy_(state));
            }
            let sum = at(p.places.assign, Act::Add(state, &y.mean())).tensor();
            at(p.places.assign, Act::Assign(state, &sum));
        }
        if k.grows
            && let Some(y) = &last
        {
            let y = y.detach().reshape([1, -1]);
            let grown = match self.history.take() {
                Some(h) => at(p.places.history, Act::Cat(&h, &y)).tensor(),
                None => y,
            };
            self.history = Some(grown);
        }
        at(p.places.barrier, Act::Sync);
        if p.reads_loss
            && p.trains()
            && let Some(loss) = &last
        {
            at(p.places.read, Act::Read(loss));
        }
        self.left = None;
    }

    /// The evaluation: the model as it is, on data of its own.
    pub fn evaluate(&self, k: &Knobs) {
        let p = self.p;
        let Some(barrier) = p.evaluates else { return };
        let usual = Knobs::of(p);
        let k = Knobs {
            attrs: k.attrs.clone(),
            rounds: k.rounds.clone(),
            conditions: k.conditions.clone(),
            skips: k.skips.clone(),
            numbers: k.numbers.clone(),
            device: k.device,
            batch: 6,
            ..usual
        };
        let y = no_grad(|| {
            let inputs = self.inputs(&k, |i| p.inputs[i].evaluated_at);
            self.run(&p.model, inputs[0].clone(), &k, &inputs, (usize::MAX, 0, 0), &mut Vec::new())
        });
        let accuracy = at(p.places.accuracy, Act::Op(&Op::Mean, &y, With::default())).tensor();
        drop(y);
        if barrier {
            at(p.places.evaluated, Act::Sync);
        }
        at(p.places.accuracy_read, Act::Read(&accuracy));
    }

    fn inputs(&self, k: &Knobs, place: impl Fn(usize) -> usize) -> Vec<Tensor> {
        let p = self.p;
        let mut all: Vec<Tensor> = Vec::new();
        for i in 0..p.inputs.len() {
            if let Some((a, b)) = k.same
                && b == i
            {
                all.push(all[a].clone());
                continue;
            }
            let (shape, dtype) = k.input(p, i);
            let x = at(place(i), Act::Data(&shape, dtype)).tensor();
            all.push(if k.device == "cpu:0" { x } else { at(place(i), Act::Moves(&x, k.device)).tensor() });
        }
        if let Some((a, b)) = k.swapped {
            all.swap(a, b);
        }
        all
    }

    /// A body; layers of the loop that is run are those of its round.
    fn run(
        &self,
        body: &[Stmt],
        mut x: Tensor,
        k: &Knobs,
        inputs: &[Tensor],
        round: (usize, usize, usize),
        kept: &mut Vec<Tensor>,
    ) -> Tensor {
        for s in body {
            x = match s {
                Stmt::Op { at: place, op, .. } => self.op(*place, op, &x, k, round),
                Stmt::Residual { at: place, body } => {
                    let y = self.run(body, x.clone(), k, inputs, round, kept);
                    at(*place, Act::Add(&x, &y)).tensor()
                }
                Stmt::Region { id, body, .. } if k.regions[*id] => {
                    no_grad(|| self.run(body, x, k, inputs, round, kept))
                }
                Stmt::Region { body, .. } => self.run(body, x, k, inputs, round, kept),
                Stmt::Call { helper, .. } => {
                    self.run(&self.p.helpers[*helper].body, x, k, inputs, (usize::MAX, 0, 0), kept)
                }
                Stmt::Loop { id, first, stride, body, .. } => {
                    for i in 0..k.rounds[*id] {
                        if k.skips[*id] != Some(i) {
                            x = self.run(body, x, k, inputs, (*first, *stride, i), kept);
                        }
                    }
                    x
                }
                Stmt::If { id, then, other, .. } => {
                    let body = if k.conditions[*id] { then } else { other };
                    self.run(body, x, k, inputs, round, kept)
                }
                Stmt::Join { at: place, input, context: false } => at(*place, Act::Add(&x, &inputs[*input])).tensor(),
                Stmt::Join { at: place, input, context: true } => {
                    let with = With { other: Some(&inputs[*input]), ..With::default() };
                    at(*place, Act::Op(&Op::Context, &x, with)).tensor()
                }
                Stmt::Aux { at: place, read_at, id, op, .. } => {
                    let aux = self.op(*place, op, &x, k, round);
                    if k.reads[*id] {
                        at(*read_at, Act::Read(&aux));
                    }
                    if k.keeps[*id] {
                        kept.push(aux);
                    }
                    x
                }
            };
        }
        x
    }

    fn op(&self, place: usize, op: &Op, x: &Tensor, k: &Knobs, (first, stride, i): (usize, usize, usize)) -> Tensor {
        let layer = match *op {
            Op::Layer(l) if l >= first && l < first.saturating_add(stride) => Some(&self.layers[l + i * stride]),
            Op::Layer(l) => Some(&self.layers[l]),
            _ => None,
        };
        let other = match *op {
            Op::Times(t) if !k.numbers[t] => self.scale.as_ref(),
            _ => None,
        };
        at(place, Act::Op(op, x, With { layer, attr: op.attr().map_or(0, |a| k.attrs[a]), other })).tensor()
    }
}
