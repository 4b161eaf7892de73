//! Where a view's elements would lie in its base's memory: an offset and a stride for each dimension, as torch has them.
use smallvec::SmallVec;
use xlazy_core::ty::Shape;

/// How a view's elements are found among those of what it is a view of.
#[derive(Clone)]
pub(crate) enum Step {
    Reshape(Shape),
    /// A reshape in which dimension `d` becomes dimension `to[d]`.
    Moved(Shape, SmallVec<[Option<usize>; 4]>),
    Permute(SmallVec<[usize; 4]>),
    /// As the caller said it: positions may count from the end, or lie beyond it.
    Slice {
        dim: usize,
        start: i64,
        end: i64,
        step: i64,
    },
    Expand(Shape),
    Diagonal {
        offset: i64,
        dims: [usize; 2],
    },
    Unfold {
        dim: usize,
        size: usize,
        step: usize,
    },
    Strided {
        size: Shape,
        stride: SmallVec<[i64; 4]>,
        offset: usize,
    },
    Detach,
    Real,
    Imag,
    AsReal,
    AsComplex,
}

impl Step {
    /// Where a slice of `n` elements starts and ends, and how far it steps.
    pub(super) fn range(&self, n: i64) -> (i64, i64, i64) {
        let Step::Slice { start, end, step, .. } = *self else { unreachable!("only slices have a range") };
        let (start, end) = Shape::span(n, start, end);
        (start, end, step)
    }

    /// Whether one element may be seen in several places.
    pub(super) fn may_overlap(&self) -> bool {
        matches!(self, Step::Expand(_) | Step::Unfold { .. } | Step::Strided { .. })
    }
}

#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub size: Shape,
    pub stride: SmallVec<[i64; 4]>,
    pub offset: i64,
}

impl Layout {
    /// Row-major order.
    pub fn in_order(size: &Shape) -> Layout {
        let mut next = 1;
        let mut stride: SmallVec<[i64; 4]> = SmallVec::from_elem(0, size.len());
        for (s, &n) in stride.iter_mut().zip(size.iter()).rev() {
            (*s, next) = (next, next * n.max(1) as i64);
        }
        Layout { size: size.clone(), stride, offset: 0 }
    }

    pub fn is_contiguous(&self) -> bool {
        let there = Layout::in_order(&self.size).stride;
        let dims = self.size.iter().zip(self.stride.iter().zip(&there));
        self.size.numel() == 0 || { dims }.all(|(&n, (a, b))| n == 1 || a == b)
    }

    /// Whether an element is seen in several places, as far as torch looks: along a dimension that was expanded.
    pub fn overlaps(&self) -> bool {
        self.size.numel() > 0 && self.size.iter().zip(&self.stride).any(|(&n, &s)| n > 1 && s == 0)
    }

    /// The strides of another shape, where it needs no copy (torch's `computeStride`).
    pub fn reshaped(&self, to: &Shape) -> Option<Layout> {
        if self.size.numel() == 0 {
            return Some(Layout { offset: self.offset, ..Layout::in_order(to) });
        }
        let mut stride: SmallVec<[i64; 4]> = SmallVec::from_elem(1, to.len());
        let mut d = to.len();
        // Runs of dimensions that lie one behind the other in memory, from the last on.
        let (mut run, mut taken) = (1, 1);
        let mut inner = self.stride.last().copied().unwrap_or(1);
        for from in (0..self.size.len()).rev() {
            run *= self.size[from];
            let ends = from == 0 || self.size[from - 1] != 1 && self.stride[from - 1] != run as i64 * inner;
            if !ends {
                continue;
            }
            while d > 0 && (taken < run || to[d - 1] == 1) {
                d -= 1;
                stride[d] = taken as i64 * inner;
                taken *= to[d];
            }
            if taken != run {
                return None;
            }
            if from > 0 {
                (inner, run, taken) = (self.stride[from - 1], 1, 1);
            }
        }
        // Dimensions of size 1 that a tensor without dimensions gets.
        (d == 0 || to[..d].iter().all(|&n| n == 1)).then(|| Layout { size: to.clone(), stride, offset: self.offset })
    }

    /// The layout of a view of this.
    pub fn stepped(mut self, step: &Step) -> Layout {
        match step {
            Step::Reshape(shape) | Step::Moved(shape, _) => {
                // What was made a view can be one.
                self.reshaped(shape).unwrap_or_else(|| Layout::in_order(shape))
            }
            Step::Permute(dims) => {
                let stride = dims.iter().map(|&d| self.stride[d]).collect();
                let size: Vec<usize> = dims.iter().map(|&d| self.size[d]).collect();
                Layout { size: Shape::new(&size), stride, offset: self.offset }
            }
            Step::Slice { dim, .. } => {
                let (start, end, by) = step.range(self.size[*dim] as i64);
                self.offset += start * self.stride[*dim];
                self.stride[*dim] *= by;
                self.size[*dim] = ((end - start + by - 1) / by).max(0) as usize;
                self
            }
            Step::Expand(shape) => {
                let skip = shape.len() - self.size.len();
                let stride = |(d, &n): (usize, &usize)| match d.checked_sub(skip) {
                    Some(of) if self.size[of] == n => self.stride[of],
                    _ => 0,
                };
                Layout { stride: shape.iter().enumerate().map(stride).collect(), size: shape.clone(), ..self }
            }
            Step::Diagonal { offset, dims: [a, b] } => {
                let (row, column) = ((-offset).max(0), (*offset).max(0));
                let n = (self.size[*a] as i64 - row).min(self.size[*b] as i64 - column).max(0);
                if n > 0 {
                    self.offset += row * self.stride[*a] + column * self.stride[*b];
                }
                let along = self.stride[*a] + self.stride[*b];
                for d in [*a.max(b), *a.min(b)] {
                    self.size.remove(d);
                    self.stride.remove(d);
                }
                self.size.push(n as usize);
                self.stride.push(along);
                self
            }
            Step::Unfold { dim, size, step } => {
                let (n, along) = (self.size[*dim], self.stride[*dim]);
                self.size[*dim] = (n - size) / step + 1;
                self.stride[*dim] = along * *step as i64;
                self.size.push(*size);
                self.stride.push(along);
                self
            }
            Step::Strided { size, stride, offset } => {
                Layout { size: size.clone(), stride: stride.clone(), offset: *offset as i64 }
            }
            Step::Detach => self,
            // In numbers of the parts, of which a complex one has two.
            Step::Real | Step::Imag | Step::AsReal => {
                self.stride.iter_mut().for_each(|s| *s *= 2);
                self.offset = self.offset * 2 + i64::from(matches!(step, Step::Imag));
                if matches!(step, Step::AsReal) {
                    self.size.push(2);
                    self.stride.push(1);
                }
                self
            }
            Step::AsComplex => {
                self.size.remove(self.size.len() - 1);
                self.stride.pop();
                self.stride.iter_mut().for_each(|s| *s /= 2);
                self.offset /= 2;
                self
            }
        }
    }
}
