//! Recurrent networks: the step of each kind, as a cell, and over sequences as loops on the device.
use super::init;
use super::module::{Module, Parts, Training, at_caller};
use crate::tensor::{Tensor, refuse};
use crate::{ScanOptions, cat, scan_with, stack};

/// What becomes of the gates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Tanh,
    ReLU,
    Lstm,
    Gru,
}

impl Kind {
    fn gates(self) -> usize {
        match self {
            Kind::Tanh | Kind::ReLU => 1,
            Kind::Gru => 3,
            Kind::Lstm => 4,
        }
    }

    /// The next state of what the input and the state add to the gates: `h`, and the memory of an LSTM.
    #[track_caller]
    fn next(self, x: &Tensor, h: &Tensor, state: &[Tensor]) -> Vec<Tensor> {
        let hidden = x.size(-1) / self.gates();
        match self {
            Kind::Tanh => vec![(x + h).tanh()],
            Kind::ReLU => vec![(x + h).relu()],
            Kind::Lstm => {
                let gates = (x + h).split(hidden, -1);
                let (i, f, g, o) = (gates[0].sigmoid(), gates[1].sigmoid(), gates[2].tanh(), gates[3].sigmoid());
                let c = f * &state[1] + i * g;
                vec![o * c.tanh(), c]
            }
            Kind::Gru => {
                let (x, h) = (x.split(hidden, -1), h.split(hidden, -1));
                let (r, z) = ((&x[0] + &h[0]).sigmoid(), (&x[1] + &h[1]).sigmoid());
                let n = (&x[2] + r * &h[2]).tanh();
                vec![(&state[0] - &n) * z + n]
            }
        }
    }
}

/// The weights of one step, under torch's names with an ending.
struct Weights {
    weight_ih: Tensor,
    weight_hh: Tensor,
    biases: Option<[Tensor; 2]>,
    /// What makes a smaller state of an LSTM's.
    weight_hr: Option<Tensor>,
    ending: String,
}

impl Weights {
    #[track_caller]
    fn new(kind: Kind, input: usize, hidden: usize, options: &RNNOptions, ending: String) -> Weights {
        let (bound, rows) = (init::default_bound(hidden), kind.gates() * hidden);
        let state = if options.proj_size > 0 { options.proj_size } else { hidden };
        Weights {
            weight_ih: init::uniform([rows, input], bound),
            weight_hh: init::uniform([rows, state], bound),
            biases: options.bias.then(|| [init::uniform([rows], bound), init::uniform([rows], bound)]),
            weight_hr: (options.proj_size > 0).then(|| init::uniform([state, hidden], bound)),
            ending,
        }
    }

    #[track_caller]
    fn of_input(&self, x: &Tensor) -> Tensor {
        x.linear(&self.weight_ih, self.biases.as_ref().map(|b| &b[0]))
    }

    #[track_caller]
    fn of_state(&self, h: &Tensor) -> Tensor {
        h.linear(&self.weight_hh, self.biases.as_ref().map(|b| &b[1]))
    }

    /// The next state, of what the input adds to the gates.
    #[track_caller]
    fn next(&self, kind: Kind, of_input: &Tensor, state: &[Tensor]) -> Vec<Tensor> {
        let mut next = kind.next(of_input, &self.of_state(&state[0]), state);
        if let Some(w) = &self.weight_hr {
            next[0] = next[0].linear(w, None);
        }
        // products may be in a smaller dtype (`autocast`), and what is carried keeps its own
        next.iter().zip(state).map(|(new, old)| new.to(old.dtype())).collect()
    }

    fn parts(&self, p: &mut Parts) {
        let mut add = |name: &str, t: &Tensor| p.add(&format!("{name}{}", self.ending), t);
        add("weight_ih", &self.weight_ih);
        add("weight_hh", &self.weight_hh);
        if let Some([ih, hh]) = &self.biases {
            add("bias_ih", ih);
            add("bias_hh", hh);
        }
        if let Some(hr) = &self.weight_hr {
            add("weight_hr", hr);
        }
    }
}

/// One step with weights of the caller's: [gates * hidden, input], [gates * hidden, hidden], and biases.
#[track_caller]
pub(super) fn step(
    kind: Kind,
    x: &Tensor,
    state: &[&Tensor],
    weights: [&Tensor; 2],
    biases: [Option<&Tensor>; 2],
) -> Vec<Tensor> {
    let state: Vec<Tensor> = state.iter().map(|s| (*s).clone()).collect();
    let (of_input, of_state) = (x.linear(weights[0], biases[0]), state[0].linear(weights[1], biases[1]));
    kind.next(&of_input, &of_state, &state)
}

/// A state to begin with: the shape but its last dimension, which is `hidden`.
#[track_caller]
fn zeros(x: &Tensor, hidden: usize) -> Tensor {
    let mut shape = x.shape().to_vec();
    if let Some(last) = shape.last_mut() {
        *last = hidden;
    }
    Tensor::zeros(shape).to(x.dtype())
}

/// What torch's recurrent networks take besides the sizes.
///
/// ```
/// use xlazy::prelude::*;
/// let options = nn::RNNOptions { num_layers: 2, bidirectional: true, batch_first: true, ..Default::default() };
/// let (y, (h, _)) = nn::LSTM::with(3, 5, options).forward(&Tensor::ones([2, 7, 3]), None);
/// assert_eq!((y.shape(), h.shape()), (Shape::new(&[2, 7, 10]), Shape::new(&[4, 2, 5])));
/// ```
#[derive(Clone, Debug)]
pub struct RNNOptions {
    pub num_layers: usize,
    pub bias: bool,
    /// [batch, length, size] in place of [length, batch, size].
    pub batch_first: bool,
    /// Between layers, while training.
    pub dropout: f64,
    pub bidirectional: bool,
    /// The size that an LSTM's state is projected to; 0 for none.
    pub proj_size: usize,
    /// Of an RNN: relu in place of tanh.
    pub relu: bool,
}

impl Default for RNNOptions {
    fn default() -> RNNOptions {
        RNNOptions {
            num_layers: 1,
            bias: true,
            batch_first: false,
            dropout: 0.0,
            bidirectional: false,
            proj_size: 0,
            relu: false,
        }
    }
}

/// Layers over sequences, each in one or two directions.
struct Layers {
    kind: Kind,
    hidden: usize,
    options: RNNOptions,
    /// Layer by layer, forward before backward.
    weights: Vec<Weights>,
    training: Training,
}

impl Layers {
    #[track_caller]
    fn new(kind: Kind, input: usize, hidden: usize, options: RNNOptions) -> Layers {
        if options.proj_size > 0 && (kind != Kind::Lstm || options.proj_size >= hidden) {
            let why =
                format!("proj_size is {}: only an LSTM's state is projected, to less than its size", options.proj_size);
            refuse("proj_size", &[], why);
        }
        let kind = if kind == Kind::Tanh && options.relu { Kind::ReLU } else { kind };
        let directions = 1 + usize::from(options.bidirectional);
        let state = if options.proj_size > 0 { options.proj_size } else { hidden };
        let mut weights = Vec::new();
        for layer in 0..options.num_layers {
            let from = if layer == 0 { input } else { state * directions };
            for direction in 0..directions {
                let back = if direction == 1 { "_reverse" } else { "" };
                weights.push(Weights::new(kind, from, hidden, &options, format!("_l{layer}{back}")));
            }
        }
        Layers { kind, hidden, options, weights, training: Training::default() }
    }

    /// What the last layer gives for each place, and the last states, each [layers · directions, batch, size].
    #[track_caller]
    fn run(&self, x: &Tensor, start: Option<Vec<Tensor>>, lengths: Option<&Tensor>) -> (Tensor, Vec<Tensor>) {
        at_caller(|| {
            let o = &self.options;
            let batched = match x.dim() {
                3 => true,
                2 => false,
                _ => refuse(
                    "rnn",
                    &[x],
                    "needs sequences: (length, batch, size), with batch_first (batch, length, size), or one",
                ),
            };
            let along = |t: &Tensor| if o.batch_first { t.transpose(0, 1) } else { t.clone() };
            let mut x = if batched { along(x) } else { x.unsqueeze(1) };
            let (length, batch) = (x.size(0), x.size(1));
            let sizes = match (self.kind, o.proj_size) {
                (Kind::Lstm, 0) => vec![self.hidden; 2],
                (Kind::Lstm, p) => vec![p, self.hidden],
                _ => vec![self.hidden],
            };
            let start = match start {
                Some(all) => all.iter().map(|s| if batched { s.clone() } else { s.unsqueeze(1) }).collect(),
                None => {
                    let zeros = |n: &usize| Tensor::zeros([self.weights.len(), batch, *n]).to(x.dtype());
                    sizes.iter().map(zeros).collect::<Vec<_>>()
                }
            };
            for (s, n) in start.iter().zip(&sizes) {
                let wanted = [self.weights.len(), batch, *n];
                if s.shape() != wanted {
                    refuse("rnn", &[&x, s], format!("the first state must be of shape {}", crate::Shape::new(&wanted)));
                }
            }
            // Whether a place is one of its sequence's: (length, batch, 1).
            let real = lengths.map(|l| {
                let places = Tensor::arange(0, length as i64, 1).reshape([-1, 1, 1]);
                places.lt(l.reshape([1, -1, 1]))
            });
            let directions = 1 + usize::from(o.bidirectional);
            let mut ends: Vec<Vec<Tensor>> = vec![vec![]; sizes.len()];
            for (layer, weights) in self.weights.chunks(directions).enumerate() {
                if layer > 0 && o.dropout > 0.0 {
                    x = x.dropout(o.dropout, self.training.on());
                }
                let mut outputs = Vec::new();
                for (direction, w) in weights.iter().enumerate() {
                    let place = (layer * directions + direction) as i64;
                    let state: Vec<Tensor> = start.iter().map(|s| s.select(0, place)).collect();
                    let (y, end) = over(self.kind, w, &x, state, real.as_ref(), direction == 1);
                    outputs.push(y);
                    ends.iter_mut().zip(end).for_each(|(all, s)| all.push(s));
                }
                x = if directions == 1 { outputs.remove(0) } else { cat(&[&outputs[0], &outputs[1]], -1) };
            }
            let ends = ends.iter().map(|all| {
                let all = stack(&all.iter().collect::<Vec<_>>(), 0);
                if batched { all } else { all.squeeze_dim(1) }
            });
            (if batched { along(&x) } else { x.squeeze_dim(1) }, ends.collect())
        })
    }
}

/// One direction of one layer: a loop whose rounds take up the state; what the input adds to the gates is one product before it.
#[track_caller]
fn over(
    kind: Kind,
    w: &Weights,
    x: &Tensor,
    start: Vec<Tensor>,
    real: Option<&Tensor>,
    reverse: bool,
) -> (Tensor, Vec<Tensor>) {
    let mut rows = vec![w.of_input(x)];
    rows.extend(real.cloned());
    let options = ScanOptions { reverse, ..Default::default() };
    let (end, y) = scan_with(
        |state: Vec<Tensor>, row: Vec<Tensor>| {
            let next = w.next(kind, &row[0], &state);
            match row.get(1) {
                None => (next.clone(), next[0].clone()),
                // behind a sequence's end its state stays, and its output is zero
                Some(real) => {
                    let kept = next.iter().zip(&state).map(|(new, old)| new.where_(real, old));
                    (kept.collect(), next[0].where_(real, 0.0))
                }
            }
        },
        &start,
        &rows,
        options,
    );
    (y, end)
}

macro_rules! sequences {
    ($($(#[$doc:meta])* $name:ident, $kind:expr, $state:ty, |$s:ident| $one:expr, |$v:ident| $many:expr;)*) => {$(
        $(#[$doc])*
        pub struct $name(Layers);

        impl $name {
            #[track_caller]
            pub fn new(input_size: usize, hidden_size: usize) -> $name {
                $name::with(input_size, hidden_size, RNNOptions::default())
            }

            #[track_caller]
            pub fn with(input_size: usize, hidden_size: usize, options: RNNOptions) -> $name {
                $name(Layers::new($kind, input_size, hidden_size, options))
            }

            /// What the last layer gives for each place of the sequences, and the last state of each layer and direction;
            /// from zeros where there is no first state.
            #[track_caller]
            pub fn forward(&self, x: &Tensor, state: Option<$state>) -> (Tensor, $state) {
                let (y, mut $v) = self.0.run(x, state.map(|$s| $one), None);
                (y, $many)
            }

            /// As `forward` for sequences of these lengths, (batch), padded behind: what torch does with
            /// `pack_padded_sequence`. Outputs behind a sequence's end are zero, and the last state is the one at its end.
            #[track_caller]
            pub fn packed(&self, x: &Tensor, lengths: &Tensor, state: Option<$state>) -> (Tensor, $state) {
                let (y, mut $v) = self.0.run(x, state.map(|$s| $one), Some(lengths));
                (y, $many)
            }
        }

        impl Module for $name {
            fn parts(&self, p: &mut Parts) {
                let (o, usual) = (&self.0.options, RNNOptions::default());
                p.unusual("num_layers", &o.num_layers, &usual.num_layers);
                p.unusual("batch_first", &o.batch_first, &usual.batch_first);
                p.unusual("dropout", &o.dropout, &usual.dropout);
                p.unusual("bidirectional", &o.bidirectional, &usual.bidirectional);
                p.unusual("proj_size", &o.proj_size, &usual.proj_size);
                p.unusual("relu", &o.relu, &usual.relu);
                self.0.weights.iter().for_each(|w| w.parts(p));
                p.training(&self.0.training);
            }
        }
    )*};
}

sequences! {
    /// `tanh(W x + V h + b)` along sequences, a loop on the device for each layer and direction (`torch.nn.RNN`).
    ///
    /// `nn::RNN::new(3, 5).forward(&Tensor::ones([7, 2, 3]), None).0.shape()` is `[7,2,5]`.
    RNN, Kind::Tanh, Tensor, |s| vec![s], |v| v.remove(0);
    /// The long short-term memory along sequences, a loop on the device for each layer and direction (`torch.nn.LSTM`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let lstm = nn::LSTM::new(3, 5);
    /// let x = Tensor::randn([7, 2, 3]);
    /// let (y, (h, c)) = lstm.forward(&x, None);
    /// assert_eq!((y.shape(), h.shape(), c.shape()), (Shape::new(&[7, 2, 5]), Shape::new(&[1, 2, 5]), Shape::new(&[1, 2, 5])));
    /// let (y, _) = lstm.packed(&x, &tensor([7, 4]), Some((h, c)));
    /// assert_eq!(y.select(0, 5).select(0, 1).to_vec::<f32>(), [0.0; 5]);
    /// ```
    LSTM, Kind::Lstm, (Tensor, Tensor), |s| vec![s.0, s.1], |v| (v.remove(0), v.remove(0));
    /// The gated recurrent unit along sequences, a loop on the device for each layer and direction (`torch.nn.GRU`).
    ///
    /// `nn::GRU::new(3, 5).forward(&Tensor::ones([7, 2, 3]), None).0.shape()` is `[7,2,5]`.
    GRU, Kind::Gru, Tensor, |s| vec![s], |v| v.remove(0);
}

macro_rules! cells {
    ($($(#[$doc:meta])* $name:ident, $kind:expr;)*) => {$(
        $(#[$doc])*
        pub struct $name(Kind, Weights, usize);

        impl $name {
            #[track_caller]
            pub fn new(input_size: usize, hidden_size: usize) -> $name {
                $name::with(input_size, hidden_size, RNNOptions::default())
            }

            /// As with `bias=False`.
            #[track_caller]
            pub fn without_bias(input_size: usize, hidden_size: usize) -> $name {
                $name::with(input_size, hidden_size, RNNOptions { bias: false, ..Default::default() })
            }

            #[track_caller]
            fn with(input_size: usize, hidden_size: usize, options: RNNOptions) -> $name {
                let weights = Weights::new($kind, input_size, hidden_size, &options, String::new());
                $name($kind, weights, hidden_size)
            }

            /// The state before the first step: zeros, [n, hidden] for `x` [n, input].
            #[track_caller]
            pub fn zeros(&self, x: &Tensor) -> Tensor {
                zeros(x, self.2)
            }

            #[track_caller]
            fn run(&self, x: &Tensor, state: &[Tensor]) -> Vec<Tensor> {
                self.1.next(self.0, &self.1.of_input(x), state)
            }
        }
    )*};
}

cells! {
    /// `tanh(W x + V h + b)` (`torch.nn.RNNCell`).
    ///
    /// `nn::RNNCell::new(3, 5).step(&Tensor::ones([2, 3]), &Tensor::zeros([2, 5])).shape()` is `[2,5]`.
    RNNCell, Kind::Tanh;
    /// The long short-term memory (`torch.nn.LSTMCell`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let cell = nn::LSTMCell::new(3, 5);
    /// let x = Tensor::ones([2, 3]);
    /// let (mut h, mut c) = (cell.zeros(&x), cell.zeros(&x));
    /// for _ in 0..4 {
    ///     (h, c) = cell.step(&x, &h, &c);
    /// }
    /// assert_eq!((h.shape(), c.shape()), (c.shape(), h.shape()));
    /// ```
    LSTMCell, Kind::Lstm;
    /// The gated recurrent unit (`torch.nn.GRUCell`).
    ///
    /// `nn::GRUCell::new(3, 5).step(&Tensor::ones([2, 3]), &Tensor::zeros([2, 5])).shape()` is `[2,5]`.
    GRUCell, Kind::Gru;
}

impl RNNCell {
    /// With relu in place of tanh (`nonlinearity="relu"`).
    pub fn relu(mut self) -> RNNCell {
        self.0 = Kind::ReLU;
        self
    }

    /// The next state from the input [n, input] and the state [n, hidden].
    #[track_caller]
    pub fn step(&self, x: &Tensor, h: &Tensor) -> Tensor {
        self.run(x, std::slice::from_ref(h)).remove(0)
    }
}

impl LSTMCell {
    /// The next state and memory.
    #[track_caller]
    pub fn step(&self, x: &Tensor, h: &Tensor, c: &Tensor) -> (Tensor, Tensor) {
        let mut next = self.run(x, &[h.clone(), c.clone()]);
        (next.remove(0), next.remove(0))
    }
}

impl GRUCell {
    /// The next state.
    #[track_caller]
    pub fn step(&self, x: &Tensor, h: &Tensor) -> Tensor {
        self.run(x, std::slice::from_ref(h)).remove(0)
    }
}

macro_rules! first_steps {
    ($($name:ident => |$m:ident, $x:ident| $f:expr;)*) => {$(
        /// The state after one step from zeros, as in torch.
        impl Module for $name {
            #[inline]
            #[track_caller]
            fn forward(&self, $x: &Tensor) -> Tensor {
                let $m = self;
                $f
            }

            fn parts(&self, p: &mut Parts) {
                p.unusual("relu", &(self.0 == Kind::ReLU), &false);
                self.1.parts(p)
            }
        }
    )*};
}

first_steps! {
    RNNCell => |m, x| m.step(x, &m.zeros(x));
    LSTMCell => |m, x| {
        let zeros = m.zeros(x);
        m.step(x, &zeros, &zeros).0
    };
    GRUCell => |m, x| m.step(x, &m.zeros(x));
}
