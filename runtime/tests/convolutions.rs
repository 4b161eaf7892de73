//! Random convolutions over little and much space, with their gradients, against the sums that define them: what platforms make of small
//! ones has the same values.
mod support;

use support::{Seeded, alone, programs};
use xlazy::grad;
use xlazy::prelude::*;

/// One along one or two dimensions of space.
#[derive(Debug)]
struct Case {
    batch: usize,
    channels: usize,
    features: usize,
    groups: usize,
    input: Vec<usize>,
    kernel: Vec<usize>,
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
}

impl Case {
    /// Kernels are often larger than the input; drawn again until one fits into the padded input.
    fn drawn(r: &mut Seeded) -> Case {
        let n = 1 + r.below(2);
        let groups = 1 + (r.below(4) == 0) as usize;
        loop {
            let mut each = |low: i64, high: i64| -> Vec<i64> { (0..n).map(|_| r.between(low, high)).collect() };
            let (input, kernel) = (each(1, 5), each(1, 5));
            let (stride, padding, dilation) = (each(1, 3), each(0, 3), each(1, 2));
            if (0..n).any(|d| input[d] + 2 * padding[d] <= dilation[d] * (kernel[d] - 1)) {
                continue;
            }
            let sizes = |all: Vec<i64>| all.into_iter().map(|k| k as usize).collect();
            let (input, kernel) = (sizes(input), sizes(kernel));
            let [batch, channels, features] = [1 + r.below(4), groups * (1 + r.below(3)), groups * (1 + r.below(4))];
            return Case { batch, channels, features, groups, input, kernel, stride, padding, dilation };
        }
    }

    fn output(&self) -> Vec<usize> {
        let room =
            |d: usize| self.input[d] as i64 + 2 * self.padding[d] - self.dilation[d] * (self.kernel[d] as i64 - 1) - 1;
        (0..self.input.len()).map(|d| (room(d) / self.stride[d] + 1) as usize).collect()
    }

    fn shape(&self, a: usize, b: usize, space: &[usize]) -> Vec<usize> {
        [&[a, b], space].concat()
    }

    /// Which elements of input, kernel and output meet, by their places in memory.
    fn meet(&self, mut f: impl FnMut(usize, usize, usize)) {
        let (output, within) = (self.output(), self.channels / self.groups);
        let [inputs, kernels, outputs] = [&self.input, &self.kernel, &output].map(|s| s.iter().product::<usize>());
        // The place in the input of one of the output and one of the kernel, dimension by dimension.
        let place = |mut o: usize, mut k: usize| -> Option<usize> {
            let (mut at, mut size) = (0, 1);
            for d in (0..output.len()).rev() {
                let (here, tap) = ((o % output[d]) as i64, (k % self.kernel[d]) as i64);
                (o, k) = (o / output[d], k / self.kernel[d]);
                let i = here * self.stride[d] + tap * self.dilation[d] - self.padding[d];
                at += usize::try_from(i).ok().filter(|&i| i < self.input[d])? * size;
                size *= self.input[d];
            }
            Some(at)
        };
        for (o, k) in (0..outputs).flat_map(|o| (0..kernels).map(move |k| (o, k))) {
            let Some(i) = place(o, k) else { continue };
            for (b, out, c) in (0..self.batch * self.features * within)
                .map(|i| (i / within / self.features, i / within % self.features, i % within))
            {
                let channel = out / (self.features / self.groups) * within + c;
                f(
                    (b * self.channels + channel) * inputs + i,
                    (out * within + c) * kernels + k,
                    (b * self.features + out) * outputs + o,
                );
            }
        }
    }
}

/// The output, and what flows to the input and to the weight.
fn results(case: &Case, [x, w, dy]: [&Tensor; 3]) -> [Tensor; 3] {
    let options = ConvOptions {
        stride: case.stride.clone().into(),
        padding: Padding::Zeros(case.padding.clone().into()),
        dilation: case.dilation.clone().into(),
        groups: case.groups,
    };
    let y = match case.input.len() {
        1 => x.conv1d(w, None, options),
        _ => x.conv2d(w, None, options),
    };
    let [dx, dw] = grad(&(&y * dy).sum(), &[x, w]).try_into().unwrap();
    [y.detach(), dx.unwrap(), dw.unwrap()]
}

#[test]
fn random_convolutions_and_their_gradients_are_the_sums_that_define_them() {
    let _alone = alone();
    for seed in programs(1) {
        let mut r = Seeded(seed * 7919);
        // Many in one program: compiling takes most of the time.
        let drawn: Vec<(Case, [Vec<f32>; 3])> = (0..12)
            .map(|_| {
                let case = Case::drawn(&mut r);
                let shapes = [
                    case.shape(case.batch, case.channels, &case.input),
                    case.shape(case.features, case.channels / case.groups, &case.kernel),
                    case.shape(case.batch, case.features, &case.output()),
                ];
                let numbers = shapes.map(|s| r.floats(s.iter().product(), -1.0, 1.0));
                (case, numbers)
            })
            .collect();
        let computed: Vec<[Tensor; 3]> = drawn
            .iter()
            .map(|(case, [x, w, dy])| {
                let x = Tensor::from_slice(x, case.shape(case.batch, case.channels, &case.input));
                let w = Tensor::from_slice(w, case.shape(case.features, case.channels / case.groups, &case.kernel));
                let dy = Tensor::from_slice(dy, case.shape(case.batch, case.features, &case.output()));
                x.requires_grad_(true);
                w.requires_grad_(true);
                results(case, [&x, &w, &dy])
            })
            .collect();
        sync();
        for ((case, [x, w, dy]), computed) in drawn.iter().zip(&computed) {
            let [mut y, mut dx, mut dw] = [dy, x, w].map(|v| vec![0.0; v.len()]);
            case.meet(|i, k, o| {
                y[o] += x[i] as f64 * w[k] as f64;
                dx[i] += dy[o] as f64 * w[k] as f64;
                dw[k] += dy[o] as f64 * x[i] as f64;
            });
            for (what, expected, got) in [("y", &y, &computed[0]), ("dx", &dx, &computed[1]), ("dw", &dw, &computed[2])]
            {
                let got = got.to_vec::<f32>();
                let far = got.iter().zip(expected).find(|(a, b)| (**a as f64 - **b).abs() > 1e-4);
                assert!(got.len() == expected.len() && far.is_none(), "seed {seed}, {case:?}: {what} has {far:?}");
            }
        }
    }
}
