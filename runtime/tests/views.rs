//! Views are views: what is written through one name is seen by all that show the same elements, as in torch.
mod support;

use support::refusal;
use xlazy::prelude::*;

fn counted(shape: &[usize]) -> Tensor {
    Tensor::arange(0.0, shape.iter().product::<usize>() as f64, 1.0).reshape(shape).copy()
}

#[test]
fn a_write_through_a_view_is_seen_by_its_base() {
    let x = Tensor::zeros([2, 3]);
    x.select(0, 1).add_(1.0);
    x.i((.., 2)).mul_(5.0);
    assert_eq!(x.to_vec::<f32>(), [0.0, 0.0, 0.0, 1.0, 1.0, 5.0]);
    x.t().i((0, ..)).copy_(tensor([7.0, 8.0]));
    x.view([3, 2]).set_((.., 1), -1.0);
    assert_eq!(x.to_vec::<f32>(), [7.0, -1.0, 0.0, -1.0, 1.0, -1.0]);
    sync();
    x.diagonal(0, 0, 1).fill_(9.0);
    x.detach().unsqueeze(0).select(2, 2).zero_();
    assert_eq!(x.to_vec::<f32>(), [9.0, -1.0, 0.0, -1.0, 9.0, 0.0]);
}

#[test]
fn a_shape_taken_in_place_leaves_views_as_they_are() {
    let x = counted(&[2, 3]);
    let (column, all) = (x.select(1, 1), x.detach());
    let name = x.clone();
    x.t_();
    assert_eq!(name.shape(), [3, 2]);
    assert!(all.shape() == [2, 3] && !x.is_contiguous());
    column.add_(10.0);
    x.select(0, 0).zero_();
    assert_eq!(x.to_vec::<f32>(), [0.0, 0.0, 11.0, 14.0, 2.0, 5.0]);
    assert_eq!(all.to_vec::<f32>(), [0.0, 11.0, 2.0, 0.0, 14.0, 5.0]);
    x.unsqueeze_(0).squeeze_().swapaxes_(0, 1);
    sync();
    all.select(0, 1).fill_(7.0);
    assert_eq!(x.shape(), [2, 3]);
    assert_eq!(x.to_vec::<f32>(), [0.0, 11.0, 2.0, 7.0, 7.0, 7.0]);
    // what is made of it afterwards knows its new shape, and gradients go their way
    let w = tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).requires_grad_(true);
    let y = &w * 2.0;
    y.t_();
    (y.select(0, 1) * tensor([1.0, 10.0, 100.0])).sum().backward();
    assert_eq!(w.grad().unwrap().to_vec::<f32>(), [0.0, 2.0, 0.0, 20.0, 0.0, 200.0]);
    let said = refusal(|| w.t_());
    assert!(said.contains("a leaf Variable that requires grad"), "{said}");
    let hidden = (&w * 2.0).detach_();
    assert!(!hidden.requires_grad() && hidden.is_leaf());
    let said = refusal(|| (&w * 2.0).select(0, 0).detach_());
    assert!(said.contains("Can't detach views in-place"), "{said}");
}

#[test]
fn the_later_forms_in_place_write_what_torch_writes() {
    let x = || tensor([[1.0, 2.0], [3.0, 4.0]]);
    let ones = Tensor::ones([2, 2]);
    let same = |y: Tensor, expected: [f32; 4]| assert_eq!(y.to_vec::<f32>(), expected);
    same(x().lt_(3.0), [1.0, 1.0, 0.0, 0.0]);
    same(x().ne_(2.0), [1.0, 0.0, 1.0, 1.0]);
    same(x().addmm_(&ones, &ones), [3.0, 4.0, 5.0, 6.0]);
    same(x().fill_diagonal_(0.0, false), [0.0, 2.0, 3.0, 0.0]);
    same(x().clip_(2.0, 3.0), [2.0, 2.0, 3.0, 3.0]);
    same(x().multiply_(2.0).subtract_(&ones).negative_(), [-1.0, -3.0, -5.0, -7.0]);
    same(x().scatter_reduce_(0, &tensor([[0, 0]]), &ones, ScatterReduce::Sum, true), [2.0, 3.0, 3.0, 4.0]);
    same(x().leaky_relu_(0.5).heaviside_(&ones), [1.0; 4]);
    assert_eq!(x().double().float_power_(2).to_vec::<f64>(), [1.0, 4.0, 9.0, 16.0]);
    let said = refusal(|| x().float_power_(2));
    assert!(said.contains("f64"), "{said}");
    assert_eq!(tensor([12, 18]).gcd_(8).to_vec::<i64>(), [4, 2]);
    let tall = Tensor::zeros([7, 3]);
    tall.fill_diagonal_(1.0, true);
    assert_eq!((tall.sum().item(), tall.i((4, 0)).item()), (6.0, 1.0));
    // drawn anew: mean and range by the distribution
    let drawn = Tensor::zeros([4000]);
    let mean = |y: Tensor| y.mean().item();
    assert!((mean(drawn.exponential_(2.0)) - 0.5).abs() < 0.05);
    assert!((mean(drawn.geometric_(0.25)) - 4.0).abs() < 0.3);
    assert!((mean(drawn.bernoulli_(0.3)) - 0.3).abs() < 0.05);
    assert!((mean(drawn.random_(0, 5)) - 2.0).abs() < 0.15);
    assert!((mean(drawn.log_normal_(0.0, 0.5)) - 1.133).abs() < 0.1);
    assert!((drawn.cauchy_(3.0, 1.0).median().item() - 3.0).abs() < 0.2);
    let whole = Tensor::zeros([8]).long();
    assert!(refusal(|| whole.exponential_(1.0)).contains("continuous"));
}

#[test]
fn siblings_see_it_with_and_without_their_base() {
    for held in [true, false] {
        let x = counted(&[2, 3]);
        let (row, column, rest) = (x.select(0, 0), x.i((.., 1)), x.i((.., 1..)));
        let other = x.select(0, 1);
        let base = held.then(|| x.clone());
        drop(x);
        sync();
        column.add_(10.0);
        row.mul_(2.0);
        assert_eq!(row.to_vec::<f32>(), [0.0, 22.0, 4.0]);
        assert_eq!(other.to_vec::<f32>(), [3.0, 14.0, 5.0]);
        assert_eq!(rest.to_vec::<f32>(), [22.0, 4.0, 14.0, 5.0]);
        assert_eq!(column.to_vec::<f32>(), [22.0, 14.0]);
        if let Some(x) = base {
            assert_eq!(x.to_vec::<f32>(), [0.0, 22.0, 4.0, 3.0, 14.0, 5.0]);
            x.zero_();
            assert_eq!(rest.to_vec::<f32>(), [0.0; 4]);
        }
    }
}

#[test]
fn parts_of_a_tensor_are_written_one_by_one() {
    let x = Tensor::zeros([6]);
    for (i, part) in x.chunk(3, 0).iter().enumerate() {
        part.fill_(i as f64);
    }
    for one in x.unbind(0) {
        one.add_(10.0);
    }
    for (k, of) in x.unfold(0, 2, 2).split(1, 0).iter().enumerate() {
        of.mul_(k as f64);
    }
    assert_eq!(x.to_vec::<f32>(), [0.0, 0.0, 11.0, 11.0, 24.0, 24.0]);
    let z = tensor([1.0]).complex(&tensor([2.0]));
    z.imag().mul_(3.0);
    z.view_as_real().select(-1, 0).sub_(1.0);
    assert_eq!((z.real().item(), z.imag().item()), (0.0, 6.0));
}

#[test]
fn what_is_a_copy_in_torch_is_one() {
    let x = counted(&[2, 3]);
    let same = x.to_vec::<f32>();
    for copy in [
        x.copy(),
        x.t().reshape(6),
        x.t().contiguous(),
        x.repeat([1, 1]),
        x.flip(Vec::<i64>::new()),
        x.index_select(0, &tensor([0, 1])),
        x.diag(0),
        x.expand([2, 2, 3]).reshape([4, 3]),
        x.rot90(0, [0, 1]),
        &x + 0.0,
    ] {
        copy.fill_(7.0);
    }
    assert_eq!(x.to_vec::<f32>(), same);
    assert!(x.reshape(6).is_contiguous() && !x.t().is_contiguous() && x.t().t().is_contiguous());
    assert!(refusal(|| x.t().view(6)).contains("view size is not compatible"));
    // what lies in order is a view, however it was reached
    x.i(1..).t().t().reshape(3).zero_();
    assert_eq!(x.i(1).sum().item(), 0.0);
}

#[test]
fn what_torch_refuses_is_refused() {
    let x = tensor([[1.0], [2.0]]);
    assert!(refusal(|| x.expand([2, 3]).add_(1.0)).contains("more than one element of the written-to tensor"));
    // one of them may be written to: they are one element
    x.expand([2, 3]).select(1, 2).add_(1.0);
    assert_eq!(x.to_vec::<f32>(), [2.0, 3.0]);
    let w = tensor([1.0, 2.0]).requires_grad_(true);
    assert!(refusal(|| w.i(0).add_(1.0)).contains("a view of a leaf Variable that requires grad"));
    assert!(
        refusal(|| w.add_(1.0)).contains("a leaf Variable that requires grad is being used in an in-place operation")
    );
    let view = w.i(0);
    no_grad(|| w.i(1).add_(1.0));
    no_grad(|| w.mul_(10.0));
    assert_eq!((w.to_vec::<f32>(), view.item()), (vec![10.0, 30.0], 10.0));
    assert!(w.is_leaf() && view.requires_grad());
    view.backward();
    assert_eq!(w.grad().expect("flows through the view").to_vec::<f32>(), [1.0, 0.0]);
    w.detach().add_(1.0);
    assert_eq!(w.to_vec::<f32>(), [11.0, 31.0]);
}

#[test]
fn gradients_flow_through_what_was_written() {
    let w = tensor([1.0, 2.0, 3.0]).requires_grad_(true);
    let x = &w * 2.0;
    let (last, first) = (x.i(2), x.i(0));
    x.i(1..).mul_(w.i(1..));
    first.copy_(&last);
    // x is [2 w₂², 2 w₁², 2 w₂²]
    let dx = grad(&x.sum(), &[&w]);
    assert_eq!(dx[0].as_ref().unwrap().to_vec::<f32>(), [0.0, 8.0, 24.0]);
    assert_eq!(grad(&first, &[&w])[0].as_ref().unwrap().to_vec::<f32>(), [0.0, 0.0, 12.0]);
    // what is written without being recorded leaves the history as it is
    let y = &w * 3.0;
    no_grad(|| y.i(0).add_(100.0));
    y.detach().i(1).zero_();
    assert_eq!(y.to_vec::<f32>(), [103.0, 0.0, 9.0]);
    assert_eq!(grad(&y.sum(), &[&w])[0].as_ref().unwrap().to_vec::<f32>(), [3.0; 3]);
}

#[test]
fn an_optimizers_step_reaches_views_of_its_parameters() {
    let w = tensor([[1.0, 2.0], [3.0, 4.0]]).requires_grad_(true);
    let turned = w.t();
    let kept = w.detach().copy();
    let mut sgd = optim::SGD::new([w.clone()], 0.5);
    turned.sum().backward();
    sgd.step();
    assert_eq!(turned.to_vec::<f32>(), [0.5, 2.5, 1.5, 3.5]);
    assert_eq!(kept.to_vec::<f32>(), [1.0, 2.0, 3.0, 4.0]);
    assert!(turned.requires_grad());
}

// ── Random programs against memory with strides ─────────────────────────────────────────────────────────────────────────

/// Numbers that follow from a seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n.max(1)
    }
}

/// A tensor as torch has it: memory that several may share, an offset, a size and a stride for each dimension.
#[derive(Clone)]
struct Strided {
    memory: usize,
    offset: usize,
    size: Vec<usize>,
    stride: Vec<usize>,
}

impl Strided {
    fn places(&self) -> Vec<usize> {
        let dims = self.size.iter().zip(&self.stride);
        dims.fold(vec![self.offset], |at, (&n, &s)| at.iter().flat_map(|p| (0..n).map(move |i| p + i * s)).collect())
    }

    fn expanded(&self) -> bool {
        self.size.iter().zip(&self.stride).any(|(&n, &s)| n > 1 && s == 0)
    }
}

/// The tensors of a random program, each beside its reference.
struct Program {
    draw: Draw,
    memories: Vec<Vec<f32>>,
    tensors: Vec<(Tensor, Strided)>,
    log: Vec<String>,
}

impl Program {
    fn new(seed: u64) -> Program {
        let mut p = Program { draw: Draw(seed), memories: vec![], tensors: vec![], log: vec![] };
        p.base();
        p
    }

    fn base(&mut self) {
        let size: Vec<usize> = (0..1 + self.draw.below(3)).map(|_| 1 + self.draw.below(3)).collect();
        let n: usize = size.iter().product();
        let values: Vec<f32> = (0..n).map(|_| self.draw.below(9) as f32).collect();
        self.owned(Tensor::from_slice(&values, size.as_slice()), values, &size);
        self.log.push(format!("new {size:?}"));
    }

    fn owned(&mut self, x: Tensor, values: Vec<f32>, size: &[usize]) {
        self.memories.push(values);
        let stride = (0..size.len()).map(|d| size[d + 1..].iter().product()).collect();
        let memory = self.memories.len() - 1;
        self.tensors.push((x, Strided { memory, offset: 0, size: size.to_vec(), stride }));
    }

    fn read(&self, s: &Strided) -> Vec<f32> {
        s.places().iter().map(|&p| self.memories[s.memory][p]).collect()
    }

    fn view(&mut self) {
        let (x, s) = self.tensors[self.draw.below(self.tensors.len())].clone();
        let rank = s.size.len();
        let (mut t, d) = (s.clone(), self.draw.below(rank));
        let (y, what) = match self.draw.below(8) {
            0 if rank > 0 => {
                let i = self.draw.below(s.size[d]);
                t.offset += i * s.stride[d];
                t.size.remove(d);
                t.stride.remove(d);
                (x.select(d as i64, i as i64), format!("select {d} {i}"))
            }
            1 | 2 if rank > 0 => {
                let start = self.draw.below(s.size[d]);
                let end = start + 1 + self.draw.below(s.size[d] - start);
                let step = 1 + self.draw.below(2);
                t.offset += start * s.stride[d];
                t.size[d] = (end - start).div_ceil(step);
                t.stride[d] *= step;
                (
                    x.slice(d as i64, start as i64, end as i64, step as i64),
                    format!("slice {d} {start}..{end} by {step}"),
                )
            }
            3 if rank > 1 => {
                let e = self.draw.below(rank);
                t.size.swap(d, e);
                t.stride.swap(d, e);
                (x.transpose(d as i64, e as i64), format!("transpose {d} {e}"))
            }
            4 if rank < 4 => {
                let d = self.draw.below(rank + 1);
                t.size.insert(d, 1);
                t.stride.insert(d, 1);
                (x.unsqueeze(d as i64), format!("unsqueeze {d}"))
            }
            5 if rank > 0 && s.size[d] == 1 => {
                let mut to: Vec<i64> = s.size.iter().map(|&n| n as i64).collect();
                to[d] = 2;
                (t.size[d], t.stride[d]) = (2, 0);
                (x.expand(to), format!("expand {d}"))
            }
            6 if rank > 1 => {
                let e = (d + 1) % rank;
                let (n, along) = (s.size[d].min(s.size[e]), s.stride[d] + s.stride[e]);
                for d in [d.max(e), d.min(e)] {
                    t.size.remove(d);
                    t.stride.remove(d);
                }
                t.size.push(n);
                t.stride.push(along);
                (x.diagonal(0, d as i64, e as i64), format!("diagonal {d} {e}"))
            }
            7 => return self.reshape(&x, &s),
            _ => (x.detach(), "detach".into()),
        };
        self.log.push(what);
        self.tensors.push((y, t));
    }

    /// Flattened: a view exactly where the elements lie evenly in memory, for whatever reason.
    fn reshape(&mut self, x: &Tensor, s: &Strided) {
        let places = s.places();
        let y = x.flatten();
        let step = if places.len() > 1 { places[1].wrapping_sub(places[0]) } else { 1 };
        let even = places.windows(2).all(|w| w[1].wrapping_sub(w[0]) == step);
        self.log.push(format!("flatten of {:?} by {:?}", s.size, s.stride));
        match even && step > 0 || places.len() == 1 || s.size.len() == 1 {
            true => {
                let t = Strided { memory: s.memory, offset: s.offset, size: vec![places.len()], stride: vec![step] };
                self.tensors.push((y, t));
            }
            false if even => {} // torch's answer depends on which dimension was expanded
            false => {
                let values = self.read(s);
                let n = values.len();
                self.owned(y, values, &[n]);
            }
        }
    }

    fn write(&mut self) {
        let (x, s) = self.tensors[self.draw.below(self.tensors.len())].clone();
        if s.expanded() {
            return;
        }
        let (how, by) = (self.draw.below(3), self.draw.below(5) as f32);
        let source = self.tensors[self.draw.below(self.tensors.len())].clone();
        self.log.push(format!("write {how} {by} to {:?} by {:?}", s.size, s.stride));
        let new: Vec<f32> = match how {
            0 => {
                x.add_(by);
                self.read(&s).iter().map(|v| v + by).collect()
            }
            1 if source.1.size == s.size => {
                x.copy_(&source.0);
                self.read(&source.1)
            }
            _ => {
                x.fill_(by);
                vec![by; s.places().len()]
            }
        };
        for (p, v) in s.places().into_iter().zip(new) {
            self.memories[s.memory][p] = v;
        }
    }

    fn step(&mut self) {
        match self.draw.below(12) {
            0 => self.base(),
            1..=5 => self.view(),
            6 if self.tensors.len() > 1 => {
                let i = self.draw.below(self.tensors.len());
                self.log.push(format!("drop {i}"));
                self.tensors.swap_remove(i);
            }
            _ => self.write(),
        }
    }
}

#[test]
fn random_programs_do_what_memory_with_strides_does() {
    // Some in one program, so that few are compiled, and not all, since XLA takes longer than twice as long for twice as much.
    (0..12).for_each(|group| together((0..10).map(|i| Program::new((group * 10 + i) * 7919 + 1)).collect()));
}

fn together(mut programs: Vec<Program>) {
    let mut run = |steps: usize| programs.iter_mut().for_each(|p| (0..steps + p.draw.below(3)).for_each(|_| p.step()));
    run(6);
    // What views are made of lets go of its operands.
    sync();
    run(6);
    // All in one program: what they show one behind the other.
    let (mut all, mut told) = (vec![], vec![]);
    for p in &programs {
        for (x, s) in &p.tensors {
            assert_eq!(x.shape().to_vec(), s.size, "{:#?}", p.log);
            all.push(x.flatten());
            told.push((p, s));
        }
    }
    let values = cat(&all.iter().collect::<Vec<_>>(), 0).to_vec::<f32>();
    let mut values = values.as_slice();
    for (p, s) in told {
        let expected = p.read(s);
        let (these, rest) = values.split_at(expected.len());
        assert_eq!(these, expected, "{:#?}", p.log);
        values = rest;
    }
}
