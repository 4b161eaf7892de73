//! Convolutions over little space as matrix products, for XLA's CPU compiler. Where a kernel reaches over more positions than the
//! input has, it swaps the two, to multiply less, and no library has what comes out: loops of its own run it, tens of times
//! slower. And for every convolution it transposes the weight, which is most of the work where there is much weight and little
//! space. A product of the weight as it is and of the input's windows, one beside the other, needs neither.
use crate::emit::{Emit, Val, read_numbers, read_type};
use crate::options::Precision;
use crate::ty::{Shape, Type};
use std::borrow::Cow;

const CONVOLUTION: &str = " = \"stablehlo.convolution\"(";
/// Windows are cut out one by one: more than these would take longer to compile than they save.
const MOST_WINDOWS: usize = 64;

/// The program with its small convolutions so.
pub(super) fn unfolded(program: &str) -> Cow<'_, str> {
    if !program.contains(CONVOLUTION) {
        return program.into();
    }
    let mut out = String::with_capacity(program.len());
    let mut e = Emit::new(Precision::Default).behind(program);
    for line in program.split_inclusive('\n') {
        match Convolution::read(line).filter(Convolution::is_small).map(|c| c.unfold(&mut e)) {
            Some(lines) => out.push_str(&lines),
            None => out.push_str(line),
        }
    }
    out.into()
}

/// How it slides along one dimension of space.
struct Slide {
    input: i64,
    kernel: i64,
    output: i64,
    stride: i64,
    /// Zeros in front of the input.
    low: i64,
    /// Distance between the input's elements.
    dilation: i64,
    /// Distance between the kernel's elements.
    hole: i64,
    /// The first and the last of the kernel, and of the output, that meet an element of the input: none else counts.
    kernels: [i64; 2],
    outputs: [i64; 2],
}

/// One that has no groups, with batch and channels in front of the space, as our lowering writes it.
struct Convolution<'a> {
    name: &'a str,
    x: Val,
    w: Val,
    out: Type,
    slides: Vec<Slide>,
    /// What stands behind it in its line: where it is from.
    behind: &'a str,
}

impl Slide {
    fn of([input, kernel, output]: [usize; 3], [stride, low, dilation, hole]: [i64; 4]) -> Option<Slide> {
        let [input, kernel, output] = [input, kernel, output].map(|n| n as i64);
        let end = (input - 1) * dilation;
        let meets = |o: i64, k: i64| {
            let at = o * stride + k * hole - low;
            (0..=end).contains(&at) && at % dilation == 0
        };
        let hull =
            |n: i64, meets: &dyn Fn(i64) -> bool| Some([(0..n).find(|&i| meets(i))?, (0..n).rfind(|&i| meets(i))?]);
        let kernels = hull(kernel, &|k| (0..output).any(|o| meets(o, k)))?;
        let outputs = hull(output, &|o| (0..kernel).any(|k| meets(o, k)))?;
        Some(Slide { input, kernel, output, stride, low, dilation, hole, kernels, outputs })
    }

    fn kernels(&self) -> i64 {
        self.kernels[1] - self.kernels[0] + 1
    }

    fn outputs(&self) -> i64 {
        self.outputs[1] - self.outputs[0] + 1
    }

    /// Zeros around the elements that count, in front and behind.
    fn padding(&self) -> [i64; 2] {
        let low = self.low - self.kernels[0] * self.hole - self.outputs[0] * self.stride;
        let reach = (self.outputs() - 1) * self.stride + (self.kernels() - 1) * self.hole + 1;
        [low, reach - (self.input - 1) * self.dilation - 1 - low]
    }
}

impl<'a> Convolution<'a> {
    fn read(line: &'a str) -> Option<Convolution<'a>> {
        let (name, rest) = line.split_once(CONVOLUTION)?;
        let (operands, rest) = rest.split_once(") {")?;
        let (attributes, rest) = rest.split_once("} : (")?;
        let (types, rest) = rest.split_once(") -> ")?;
        let (x, w) = operands.split_once(", ")?;
        let (x_type, w_type) = types.split_once(", ")?;
        let (out, behind) = rest.trim_end().split_at(rest.find('>')? + 1);
        let (x, w, out) = (Val::read(x, read_type(x_type)?)?, Val::read(w, read_type(w_type)?)?, read_type(out)?);
        let n = x.rank().checked_sub(2)?;
        let numbers = |name: &str, count: usize| read_numbers(attributes, name).filter(|all| all.len() == count);
        let one = |name: &str, is: i64| numbers(name, 1).filter(|all| all[0] == is);
        for (name, batch, feature) in [
            ("input", "batch", "feature"),
            ("kernel", "output_feature", "input_feature"),
            ("output", "batch", "feature"),
        ] {
            one(&format!("{name}_{batch}_dimension"), 0)?;
            one(&format!("{name}_{feature}_dimension"), 1)?;
            let space = numbers(&format!("{name}_spatial_dimensions"), n)?;
            space.iter().zip(2..).all(|(&d, i)| d == i).then_some(())?;
        }
        one("feature_group_count", 1)?;
        one("batch_group_count", 1)?;
        let (stride, padding) = (numbers("window_strides", n)?, numbers("padding", 2 * n)?);
        let (dilation, hole) = (numbers("lhs_dilation", n)?, numbers("rhs_dilation", n)?);
        let slide = |d: usize| {
            let sizes = [x.shape()[d + 2], w.shape()[d + 2], out.shape[d + 2]];
            Slide::of(sizes, [stride[d], padding[2 * d], dilation[d], hole[d]])
        };
        let slides: Option<Vec<Slide>> = (0..n).map(slide).collect();
        let is_float = [&x.ty, &w.ty, &out].iter().all(|t| t.dtype.is_float() && t.dtype == out.dtype);
        Some(Convolution { name: name.trim_start(), slides: slides?, x, w, out, behind }).filter(|_| is_float)
    }

    fn product(&self, of: impl Fn(&Slide) -> i64) -> usize {
        self.slides.iter().map(|s| of(s) as usize).product()
    }

    /// Whether XLA would swap it, or its windows are no more than what it takes and gives.
    fn is_small(&self) -> bool {
        let (kernels, outputs) = (self.product(Slide::kernels), self.product(Slide::outputs));
        let is_product = self
            .slides
            .iter()
            .all(|s| s.kernel == 1 && s.stride == 1 && s.dilation == 1 && s.low == 0 && s.output == s.input);
        if is_product || kernels.min(outputs) > MOST_WINDOWS {
            return false;
        }
        let windows = self.x.shape()[0] * self.x.shape()[1] * kernels * outputs;
        let most = [self.x.shape(), self.w.shape(), &self.out.shape].map(|s| s.numel()).into_iter().max();
        self.product(|s| s.kernel) > self.product(|s| s.input) || Some(windows) <= most
    }

    /// The same in lines of its own, of which the last one has its name.
    fn unfold(&self, e: &mut Emit) -> String {
        let begin = e.text().len();
        let result = self.write(e);
        let text = &e.text()[begin..];
        let (before, last) = text.trim_end().rsplit_once('\n').unwrap_or(("", text.trim_end()));
        let last = last.replacen(&format!("{result} ="), &format!("{} =", self.name), 1);
        let lines = before.lines().chain([last.as_str()]);
        lines.map(|line| format!("{line}{}\n", self.behind)).collect()
    }

    fn write(&self, e: &mut Emit) -> Val {
        let (n, dtype) = (self.slides.len(), self.out.dtype);
        let per_dimension =
            |of: &dyn Fn(&Slide) -> i64| -> Vec<i64> { [0; 2].into_iter().chain(self.slides.iter().map(of)).collect() };
        let sizes = |a: usize, b: usize, of: &dyn Fn(&Slide) -> i64| -> Vec<usize> {
            [a, b].into_iter().chain(self.slides.iter().map(|s| of(s) as usize)).collect()
        };
        let (batch, channels, features) = (self.x.shape()[0], self.x.shape()[1], self.w.shape()[0]);
        let zero = e.scalar(0.0, dtype);
        let (low, high) = (per_dimension(&|s| s.padding()[0]), per_dimension(&|s| s.padding()[1]));
        let x = padded(e, &self.x, &zero, [&low, &high, &per_dimension(&|s| s.dilation - 1)]);
        // What of the kernel meets nothing but zeros.
        let mut start = vec![0; n + 2];
        let mut limit: Vec<i64> = self.w.shape().iter().map(|&d| d as i64).collect();
        for (s, d) in self.slides.iter().zip(2..) {
            (start[d], limit[d]) = (s.kernels[0], s.kernels[1] + 1);
        }
        let w = sliced(e, &self.w, [&start, &limit, &vec![1; n + 2]]);
        let (kernels, outputs) = (self.product(Slide::kernels), self.product(Slide::outputs));
        let inner: Vec<usize> = (2..n + 2).collect();
        let product = if kernels <= outputs {
            // What each element of the kernel meets, in all windows.
            let all = self.cut(e, &x, [Slide::kernels, Slide::outputs], [|s| s.hole, |s| s.stride]);
            let w = e.reshape(&w, &Shape::new(&[features, channels, kernels]));
            e.dot_general(&w, &all, [&[], &[]], [&[1, 2], &[1, 2]])
        } else {
            // One window after the other.
            let all = self.cut(e, &x, [Slide::outputs, Slide::kernels], [|s| s.stride, |s| s.hole]);
            let (of_w, of_x): (Vec<usize>, Vec<usize>) =
                ([vec![1], inner.clone()].concat(), [vec![1], inner.iter().map(|d| d + 1).collect()].concat());
            e.dot_general(&w, &all, [&[], &[]], [&of_w, &of_x])
        };
        let y = e.reshape(&product, &Shape::new(&sizes(features, batch, &Slide::outputs)));
        let y = e.transpose(&y, &[vec![1, 0], inner].concat());
        // And those of the output that no element of the input reaches.
        let (low, high) = (per_dimension(&|s| s.outputs[0]), per_dimension(&|s| s.output - 1 - s.outputs[1]));
        padded(e, &y, &zero, [&low, &high, &per_dimension(&|_| 0)])
    }

    /// The input along one side of a product over all positions of the other, these beside one another behind the channels.
    fn cut(
        &self,
        e: &mut Emit,
        x: &Val,
        [beside, along]: [fn(&Slide) -> i64; 2],
        [by, step]: [fn(&Slide) -> i64; 2],
    ) -> Val {
        let (batch, channels) = (x.shape()[0], x.shape()[1]);
        let mut steps = vec![1, 1];
        steps.extend(self.slides.iter().map(step));
        let mut shape = vec![batch, channels, 1];
        shape.extend(self.slides.iter().map(|s| along(s) as usize));
        let shape = Shape::new(&shape);
        let parts: Vec<Val> = (0..self.product(beside))
            .map(|place| {
                let (mut rest, mut start, mut limit) = (place as i64, vec![0, 0], vec![batch as i64, channels as i64]);
                for s in self.slides.iter().rev() {
                    let at = rest % beside(s) * by(s);
                    rest /= beside(s);
                    start.insert(2, at);
                    limit.insert(2, at + (along(s) - 1) * step(s) + 1);
                }
                let part = sliced(e, x, [&start, &limit, &steps]);
                e.reshape(&part, &shape)
            })
            .collect();
        match &parts[..] {
            [one] => one.clone(),
            all => e.concatenate(&all.iter().collect::<Vec<_>>(), 2),
        }
    }
}

fn padded(e: &mut Emit, x: &Val, zero: &Val, [low, high, interior]: [&[i64]; 3]) -> Val {
    match [low, high, interior].concat().iter().all(|&n| n == 0) {
        true => x.clone(),
        false => e.pad(x, zero, low, high, interior),
    }
}

fn sliced(e: &mut Emit, x: &Val, [start, limit, step]: [&[i64]; 3]) -> Val {
    let whole = x.shape().iter().zip(limit).all(|(&n, &l)| n as i64 == l);
    match whole && start.iter().all(|&n| n == 0) && step.iter().all(|&n| n == 1) {
        true => x.clone(),
        false => e.slice(x, start, limit, step),
    }
}

#[cfg(test)]
mod tests {
    use super::unfolded;

    /// A line as our lowering writes it, of a convolution over one dimension.
    fn line(x: &str, w: &str, out: &str, [stride, low, high, dilation]: [i64; 4], groups: i64) -> String {
        format!(
            "    %7 = \"stablehlo.convolution\"(%3, %4#1) {{dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, \
             input_feature_dimension = 1, input_spatial_dimensions = [2], kernel_output_feature_dimension = 0, \
             kernel_input_feature_dimension = 1, kernel_spatial_dimensions = [2], output_batch_dimension = 0, \
             output_feature_dimension = 1, output_spatial_dimensions = [2]>, feature_group_count = {groups} : i64, \
             batch_group_count = 1 : i64, window_strides = array<i64: {stride}>, padding = dense<[[{low}, {high}]]> : tensor<1x2xi64>, \
             lhs_dilation = array<i64: {dilation}>, rhs_dilation = array<i64: 1>}} : (tensor<{x}>, tensor<{w}>) -> tensor<{out}> \
             loc(\"here\")\n"
        )
    }

    fn names(text: &str) -> Vec<&str> {
        text.lines().map(|l| l.split('"').nth(1).unwrap_or_else(|| l.split_whitespace().nth(2).unwrap())).collect()
    }

    #[test]
    fn where_a_kernel_is_larger_than_the_input_its_windows_are_cut_out_and_multiplied() {
        let text = line("2x3x2xf32", "4x3x3xf32", "2x4x2xf32", [1, 1, 1, 1], 1);
        let form = unfolded(&text);
        let of = |op: &str| names(&form).iter().filter(|n| **n == format!("stablehlo.{op}")).count();
        assert_eq!((of("convolution"), of("slice"), of("concatenate"), of("dot_general")), (0, 2, 1, 1), "{form}");
        let last = form.lines().last().unwrap();
        assert!(last.starts_with("    %7 = ") && last.contains("-> tensor<2x4x2xf32>"), "{form}");
        // What was there keeps its names, what is new has none of them, and all of it is from the same place.
        assert!(form.contains("(%3, ") && form.contains("(%4#1"), "{form}");
        assert!(form.lines().all(|l| l.ends_with("loc(\"here\")")), "{form}");
        assert!(!form.contains("    %3 =") && form.contains("    %8 ="), "{form}");
    }

    #[test]
    fn of_a_kernel_over_one_element_only_what_meets_it_is_multiplied() {
        let form = unfolded(&line("8x16x1xf32", "32x16x3xf32", "8x32x1xf32", [1, 1, 1, 1], 1)).into_owned();
        assert!(form.contains("(tensor<32x16x3xf32>) -> tensor<32x16x1xf32>"), "{form}");
        assert!(!form.contains("stablehlo.concatenate"), "{form}");
        // As the gradient of a weight has it: of a large output one element is computed.
        let form = unfolded(&line("16x8x1xf32", "32x8x1xf32", "16x32x3xf32", [1, 1, 1, 1], 1)).into_owned();
        assert!(
            form.contains("-> tensor<32x16x1xf32>") && form.trim_end().contains("-> tensor<16x32x3xf32>"),
            "{form}"
        );
    }

    #[test]
    fn everything_else_is_left_as_it_is() {
        let cases = [
            // Much space; groups; integers; what is a product as it is; windows that meet nothing.
            line("2x3x90xf32", "4x3x3xf32", "2x4x90xf32", [1, 1, 1, 1], 1),
            line("2x4x2xf32", "4x2x3xf32", "2x4x2xf32", [1, 1, 1, 1], 2),
            line("2x3x2xi32", "4x3x3xi32", "2x4x2xi32", [1, 1, 1, 1], 1),
            line("2x3x5xf32", "4x3x1xf32", "2x4x5xf32", [1, 0, 0, 1], 1),
            line("2x3x1xf32", "4x3x1xf32", "2x4x2xf32", [3, 1, 3, 1], 1),
            line("2x3x2xf32", "4x3x3xf32", "2x4x2xf32", [1, 1, 1, 1], 1)
                .replace("input_batch_dimension = 0", "input_batch_dimension = 2"),
            line("2x3x2xf32", "4x3x3xf32", "2x4x2xf32", [1, 1, 1, 1], 1).replace("stablehlo.conv", "mhlo.conv"),
            "    %1 = stablehlo.constant dense<0.0> : tensor<f32>\n".into(),
        ];
        for text in cases {
            assert_eq!(unfolded(&text), text);
        }
    }
}
