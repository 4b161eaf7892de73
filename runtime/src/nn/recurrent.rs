//! One step of recurrent networks.
use super::init;
use super::module::{Module, Parts};
use crate::tensor::Tensor;

/// The weights that all cells have, under torch's names; `gates` blocks of `hidden` rows.
struct Weights {
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor,
    bias_hh: Tensor,
    hidden: usize,
}

impl Weights {
    #[track_caller]
    fn new(input: usize, hidden: usize, gates: usize) -> Weights {
        let bound = init::default_bound(hidden);
        let rows = gates * hidden;
        Weights {
            weight_ih: init::uniform([rows, input], bound),
            weight_hh: init::uniform([rows, hidden], bound),
            bias_ih: init::uniform([rows], bound),
            bias_hh: init::uniform([rows], bound),
            hidden,
        }
    }

    /// What the input adds to the gates, and what the state adds.
    #[track_caller]
    fn gates(&self, x: &Tensor, h: &Tensor) -> (Tensor, Tensor) {
        (x.matmul(&self.weight_ih.t()) + &self.bias_ih, h.matmul(&self.weight_hh.t()) + &self.bias_hh)
    }

    /// A state to begin with.
    #[track_caller]
    fn zeros(&self, x: &Tensor) -> Tensor {
        let mut shape = x.shape().to_vec();
        if let Some(last) = shape.last_mut() {
            *last = self.hidden;
        }
        Tensor::zeros(shape).to(x.dtype())
    }

    #[track_caller]
    fn split(&self, gates: &Tensor) -> Vec<Tensor> {
        gates.split(self.hidden, -1)
    }

    fn parts(&self, p: &mut Parts) {
        p.add("weight_ih", &self.weight_ih);
        p.add("weight_hh", &self.weight_hh);
        p.add("bias_ih", &self.bias_ih);
        p.add("bias_hh", &self.bias_hh);
    }
}

macro_rules! cells {
    ($($(#[$doc:meta])* $name:ident, gates: $gates:literal;)*) => {$(
        $(#[$doc])*
        pub struct $name(Weights);

        impl $name {
            #[track_caller]
            pub fn new(input_size: usize, hidden_size: usize) -> $name {
                $name(Weights::new(input_size, hidden_size, $gates))
            }

            /// The state before the first step: zeros, [n, hidden] for `x` [n, input].
            #[track_caller]
            pub fn zeros(&self, x: &Tensor) -> Tensor {
                self.0.zeros(x)
            }
        }
    )*};
}

cells! {
    /// `tanh(W x + V h + b)` (`torch.nn.RNNCell`).
    RNNCell, gates: 1;
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
    LSTMCell, gates: 4;
    /// The gated recurrent unit (`torch.nn.GRUCell`).
    GRUCell, gates: 3;
}

impl RNNCell {
    /// The next state from the input [n, input] and the state [n, hidden].
    #[track_caller]
    pub fn step(&self, x: &Tensor, h: &Tensor) -> Tensor {
        let (a, b) = self.0.gates(x, h);
        (a + b).tanh()
    }
}

impl LSTMCell {
    /// The next state and memory.
    #[track_caller]
    pub fn step(&self, x: &Tensor, h: &Tensor, c: &Tensor) -> (Tensor, Tensor) {
        let (a, b) = self.0.gates(x, h);
        let gates = self.0.split(&(a + b));
        let (i, f, g, o) = (gates[0].sigmoid(), gates[1].sigmoid(), gates[2].tanh(), gates[3].sigmoid());
        let c = f * c + i * g;
        (o * c.tanh(), c)
    }
}

impl GRUCell {
    /// The next state.
    #[track_caller]
    pub fn step(&self, x: &Tensor, h: &Tensor) -> Tensor {
        let (a, b) = self.0.gates(x, h);
        let (a, b) = (self.0.split(&a), self.0.split(&b));
        let r = (&a[0] + &b[0]).sigmoid();
        let z = (&a[1] + &b[1]).sigmoid();
        let n = (&a[2] + r * &b[2]).tanh();
        &n + z * (h - &n)
    }
}

/// The state after one step from zeros, as in torch.
impl Module for RNNCell {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.step(x, &self.zeros(x))
    }

    fn parts(&self, p: &mut Parts) {
        self.0.parts(p)
    }
}

/// The state (without the memory) after one step from zeros.
impl Module for LSTMCell {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        let zeros = self.zeros(x);
        self.step(x, &zeros, &zeros).0
    }

    fn parts(&self, p: &mut Parts) {
        self.0.parts(p)
    }
}

/// The state after one step from zeros, as in torch.
impl Module for GRUCell {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.step(x, &self.zeros(x))
    }

    fn parts(&self, p: &mut Parts) {
        self.0.parts(p)
    }
}
