//! What a line of a drawn program does, as calls of the public API: whoever calls [`act`] is the line.
use super::program::{Layer, Op, Spec};
use std::panic::Location;
use xlazy::prelude::*;

/// One thing that a line does.
pub enum Act<'a> {
    /// Says where it is.
    Where,
    /// `Tensor::from_vec(…)`
    Data(&'a [usize], DType),
    Make(&'a Spec),
    /// An op on a value: with its layer, its attribute, and another value where it takes one.
    Op(&'a Op, &'a Tensor, With<'a>),
    Add(&'a Tensor, &'a Tensor),
    Backward(&'a Tensor),
    Optimizer(&'a [Tensor], u8),
    Step(&'a mut Trainer),
    Clip(&'a [Tensor]),
    /// Draws parameters anew, one way or another.
    Init(&'a [Tensor], bool),
    Ema(&'a [Tensor], &'a [Tensor]),
    Copies(&'a [Tensor]),
    Sync,
    Read(&'a Tensor),
    Trains(&'a [Tensor], bool),
    Mode(&'a [Layer], bool),
    Precision(&'a str),
    Moves(&'a Tensor, &'a str),
    MovesLayers(&'a [Layer], &'a str),
    /// `state.copy_(x)`
    Assign(&'a Tensor, &'a Tensor),
    Cat(&'a Tensor, &'a Tensor),
    Zeros(&'a [usize]),
}

/// What an op may take besides its operand.
#[derive(Default)]
pub struct With<'a> {
    pub layer: Option<&'a Layer>,
    pub attr: i64,
    pub other: Option<&'a Tensor>,
}

pub enum Out {
    Place(&'static Location<'static>),
    Tensor(Tensor),
    Tensors(Vec<Tensor>),
    Layer(Layer),
    Trainer(Trainer),
    Nothing,
}

impl Out {
    pub fn tensor(self) -> Tensor {
        match self {
            Out::Tensor(t) => t,
            _ => unreachable!("no tensor"),
        }
    }
}

pub enum Trainer {
    Sgd(optim::SGD),
    Adam(optim::Adam),
}

#[track_caller]
pub fn act(what: Act) -> Out {
    Out::Tensor(match what {
        Act::Where => return Out::Place(Location::caller()),
        Act::Data(shape, dtype) => data(shape, dtype),
        Act::Make(spec) => return Out::Layer(make(spec)),
        Act::Op(op, x, with) => op_on(op, x, with),
        Act::Add(x, y) => x + y,
        Act::Backward(loss) => {
            loss.backward();
            return Out::Nothing;
        }
        Act::Optimizer(parameters, kind) => {
            let momentum = |momentum| optim::SGDOptions { momentum, ..Default::default() };
            return Out::Trainer(match kind {
                0 => Trainer::Sgd(optim::SGD::new(parameters, 0.1)),
                1 => Trainer::Sgd(optim::SGD::with(parameters, 0.1, momentum(0.9))),
                _ => Trainer::Adam(optim::Adam::new(parameters, 1e-3)),
            });
        }
        Act::Step(trainer) => {
            match trainer {
                Trainer::Sgd(o) => o.step(),
                Trainer::Adam(o) => o.step(),
            }
            return Out::Nothing;
        }
        Act::Clip(parameters) => {
            optim::clip_grad_norm_(parameters, 1.0);
            return Out::Nothing;
        }
        Act::Init(all, uniform) => {
            for p in all {
                if uniform {
                    p.uniform_(-0.1, 0.1)
                } else {
                    p.normal_(0.0, 0.02)
                };
            }
            return Out::Nothing;
        }
        Act::Copies(all) => return Out::Tensors(copies(all)),
        Act::Ema(shadow, parameters) => {
            for (s, p) in shadow.iter().zip(parameters) {
                s.copy_(p.detach().lerp(s, 0.99));
            }
            return Out::Nothing;
        }
        Act::Sync => {
            sync();
            return Out::Nothing;
        }
        Act::Read(x) => {
            x.item();
            return Out::Nothing;
        }
        Act::Trains(all, on) => {
            for p in all {
                p.requires_grad_(on);
            }
            return Out::Nothing;
        }
        Act::Mode(layers, training) => {
            for layer in layers {
                layer.module().train(training);
            }
            return Out::Nothing;
        }
        Act::Precision(name) => {
            xlazy::backends::set_mat_mul_precision(name).expect("a precision");
            return Out::Nothing;
        }
        Act::Moves(x, device) => x.to(device),
        Act::MovesLayers(layers, device) => {
            for layer in layers {
                match layer {
                    Layer::Linear(l) => l.to(device),
                    Layer::Norm(l) => l.to(device),
                    Layer::Embedding(l) => l.to(device),
                    Layer::Conv(l) => l.to(device),
                    Layer::BatchNorm(l) => l.to(device),
                    Layer::Dropout(l) => l.to(device),
                }
            }
            return Out::Nothing;
        }
        Act::Assign(state, x) => {
            state.copy_(x);
            return Out::Nothing;
        }
        Act::Cat(x, y) => cat(&[x, y], 0),
        Act::Zeros(shape) => Tensor::zeros(shape),
    })
}

#[track_caller]
fn data(shape: &[usize], dtype: DType) -> Tensor {
    let n = shape.iter().product();
    match dtype {
        DType::F64 => Tensor::from_vec(vec![0.5f64; n], shape),
        DType::I64 => Tensor::from_vec(vec![1i64; n], shape),
        DType::I32 => Tensor::from_vec(vec![1i32; n], shape),
        DType::U8 => Tensor::from_vec(vec![1u8; n], shape),
        _ => Tensor::from_vec(vec![0.5f32; n], shape),
    }
}

#[track_caller]
fn copies(all: &[Tensor]) -> Vec<Tensor> {
    let mut copies = Vec::new();
    for t in all {
        copies.push(t.detach().copy());
    }
    copies
}

#[track_caller]
fn make(spec: &Spec) -> Layer {
    match *spec {
        Spec::Linear(from, to) => Layer::Linear(nn::Linear::new(from, to)),
        Spec::Norm(d) => Layer::Norm(nn::LayerNorm::new([d])),
        Spec::Embedding(n, d) => Layer::Embedding(nn::Embedding::new(n, d)),
        Spec::Conv(from, to) => {
            let options = ConvOptions { padding: 1.into(), ..Default::default() };
            Layer::Conv(nn::Conv2d::with(from, to, 3, options))
        }
        Spec::BatchNorm(d) => Layer::BatchNorm(nn::BatchNorm2d::new(d)),
        Spec::Dropout => Layer::Dropout(nn::Dropout::new(0.1)),
    }
}

#[track_caller]
fn op_on(op: &Op, x: &Tensor, With { layer, attr, other }: With) -> Tensor {
    let last = x.dim() as i64 - 1;
    match op {
        Op::Unary(0) => x.tanh(),
        Op::Unary(1) => x.relu(),
        Op::Unary(2) => x.gelu(),
        Op::Unary(3) => x.silu(),
        Op::Unary(4) => x.sigmoid(),
        Op::Unary(5) => x.abs(),
        Op::Unary(6) => x.square(),
        Op::Unary(_) => x.softplus(),
        Op::Scale => x * 0.5,
        Op::Shift => x + 1.5,
        Op::Times(_) => match other {
            Some(s) => x * s,
            None => x * 0.25,
        },
        Op::Layer(_) => match layer.expect("a layer") {
            Layer::Linear(l) => l.forward(x),
            Layer::Norm(l) => l.forward(x),
            Layer::Embedding(l) => l.forward(x),
            Layer::Conv(l) => l.forward(x),
            Layer::BatchNorm(l) => l.forward(x),
            Layer::Dropout(l) => l.forward(x),
        },
        Op::Float => x.float(),
        Op::Softmax(_) => x.softmax(attr),
        Op::Cumsum(_) => x.cumsum(attr),
        Op::Flip(_) => x.flip([attr]),
        Op::Center(_) => x - x.mean_dim([attr], true),
        Op::Peak(_) => x - x.amax([attr], true),
        Op::Spread(_) => x / (x.var_dim([attr], 0, true) + 1.0).sqrt(),
        Op::Roll(_) => x.roll([attr], [last]),
        Op::Narrow(_, length) => x.narrow(last, attr, *length),
        Op::Take(_) => x.narrow(1, 0, attr),
        Op::Pad(_) => x.pad([1, 0], attr as f64),
        Op::Threshold(_) => x.threshold(attr as f64, 0.0),
        Op::Gelu(_) if attr == 0 => x.gelu(),
        Op::Gelu(_) => x.gelu_tanh(),
        Op::Sort(_) => x.sort(last, attr == 1).0,
        Op::Twice => cat(&[x, &x.sin()], last),
        Op::Attend => x.scaled_dot_product_attention(x, x, Default::default()),
        Op::Positions => x + Tensor::arange(0.0, x.size(1) as f64, 1.0).unsqueeze(-1),
        Op::Select(_) => x.select(1, attr),
        Op::Tril(_) => x.tril(attr),
        Op::Part(_, length) => x.slice(last, attr, attr + length, 1),
        Op::Start(_) if attr == 0 => x + Tensor::zeros([x.size(-1)]),
        Op::Start(_) => x + Tensor::randn([x.size(-1)]),
        Op::MeanTime => x.mean_dim([1], false),
        Op::MeanSpace => x.mean_dim([2, 3], false),
        Op::Mean => x.mean(),
        Op::Norm => x.norm(),
        Op::Max => x.max(),
        Op::Context => x + other.expect("a context").tanh().mean(),
        Op::Loss(_) => match attr {
            0 => x.square().mean(),
            1 => x.square().sum(),
            _ => x.abs().mean(),
        },
        Op::CrossEntropy(_) => {
            let reduction = if attr == 0 { Reduction::Mean } else { Reduction::Sum };
            x.cross_entropy(other.expect("targets"), CrossEntropyOptions { reduction, ..Default::default() })
        }
    }
}
