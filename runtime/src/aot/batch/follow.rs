//! Which dimensions are the batch, and what all others are when it has another size.
use super::{Batch, Dim, Rule, Sizes};
use std::ops::Range;

impl Sizes<'_> {
    /// What the batch is: of the dimensions that lead inputs which the program does not replace the one that leads most values, and
    /// with it what leads other such inputs with the same size, as labels that are only looked up by.
    pub fn batch(&self) -> Option<Batch> {
        let state: Vec<Dim> =
            self.inputs.iter().filter(|i| i.replaced).flat_map(|i| &i.shape).map(|&d| self.root(d)).collect();
        let fixed: Vec<Dim> = self
            .rules
            .iter()
            .filter_map(|(rule, _)| match rule {
                Rule::Fixed(d) => Some(self.root(*d)),
                _ => None,
            })
            .collect();
        let mut found: Vec<Batch> = Vec::new();
        for input in self.inputs.iter().filter(|i| !i.replaced) {
            let Some(&first) = input.shape.first() else { continue };
            let dim = self.root(first);
            let named = (input.number, input.ty.clone());
            match found.iter_mut().find(|b| b.dims[0] == dim) {
                Some(batch) => batch.inputs.push(named),
                None if self.old[dim] > 1 && !state.contains(&dim) => {
                    found.push(Batch { dims: vec![dim], size: self.old[dim], inputs: vec![named] });
                }
                None => {}
            }
        }
        let leads = |b: &Batch| self.leading.iter().filter(|&&d| self.root(d) == b.dims[0]).count();
        found.retain(|b| leads(b) > 0);
        found.sort_by_key(|b| (fixed.contains(&b.dims[0]), std::cmp::Reverse(leads(b))));
        let inner: Vec<Dim> = self.inputs.iter().flat_map(|i| i.shape.iter().skip(1)).map(|&d| self.root(d)).collect();
        let mut found = found.into_iter();
        let mut batch = found.next()?;
        for other in found {
            let [dim] = other.dims[..] else { continue };
            if other.size == batch.size && !inner.contains(&dim) && !fixed.contains(&dim) {
                batch.dims.push(dim);
                batch.inputs.extend(other.inputs);
            }
        }
        batch.inputs.sort_unstable();
        Some(batch)
    }

    /// The text with `size` in the place of a batch's.
    ///
    /// Errors: an op whose sizes do not follow from it, as `(its line in the text, why)`.
    pub fn over(&self, batch: &Batch, size: u64) -> std::result::Result<String, (String, String)> {
        let mut new: Vec<Option<u64>> = vec![None; self.old.len()];
        batch.dims.iter().for_each(|&d| new[d] = Some(size));
        self.follow(&mut new)?;
        let now = |d: Dim| new[self.root(d)].unwrap_or(self.old[d]);
        let mut edits: Vec<(Range<usize>, String)> = Vec::new();
        for (range, shape) in &self.types {
            let sizes: String = shape.iter().map(|&d| format!("{}x", now(d))).collect();
            edits.push((range.clone(), sizes));
        }
        edits.extend(self.numbers.iter().map(|(range, d)| (range.clone(), now(*d).to_string())));
        edits.sort_by_key(|(range, _)| range.start);
        let mut out = String::with_capacity(self.text.len());
        let mut at = 0;
        for (range, text) in edits {
            out.push_str(&self.text[at..range.start]);
            out.push_str(&text);
            at = range.end;
        }
        out.push_str(&self.text[at..]);
        Ok(out)
    }

    /// Takes what is known through the rules, until there is nothing more to learn.
    fn follow(&self, new: &mut [Option<u64>]) -> std::result::Result<(), (String, String)> {
        loop {
            let mut learnt = false;
            // A guess is made only where nothing is certain.
            for guess in [false, true] {
                for (rule, line) in &self.rules {
                    let said = self.learn(rule, new, guess).map_err(|why| ((*line).to_owned(), why))?;
                    for (d, size) in said {
                        let root = self.root(d);
                        if new[root].is_none() {
                            new[root] = Some(size);
                            learnt = true;
                        }
                    }
                    if guess && learnt {
                        break;
                    }
                }
                if learnt {
                    break;
                }
            }
            if !learnt {
                break;
            }
        }
        let holds = |rule: &Rule| {
            let now = |d: &Dim| new[self.root(*d)].unwrap_or(self.old[*d]);
            match rule {
                Rule::Fixed(d) => now(d) == self.old[*d],
                Rule::Sum(out, parts, plus) => {
                    now(out) as i64 == parts.iter().map(|d| now(d) as i64).sum::<i64>() + plus
                }
                Rule::Part(out, x, start, step) => now(out) as i64 == (now(x) as i64 - start + step - 1) / step,
                Rule::Product(a, b) => a.iter().map(now).product::<u64>() == b.iter().map(now).product::<u64>(),
            }
        };
        match self.rules.iter().find(|(rule, _)| !holds(rule)) {
            None => Ok(()),
            Some((Rule::Fixed(d), line)) => {
                let why = format!("has a size of its own, {}, which does not follow from the batch", self.old[*d]);
                Err(((*line).to_owned(), why))
            }
            Some((_, line)) => Err(((*line).to_owned(), "gives sizes that do not fit together any more".into())),
        }
    }

    /// What a rule says of dimensions that have no new size yet.
    fn learn(&self, rule: &Rule, new: &[Option<u64>], guess: bool) -> std::result::Result<Vec<(Dim, u64)>, String> {
        let get = |d: &Dim| new[self.root(*d)];
        let changed = |d: &Dim| get(d).is_some_and(|n| n != self.old[*d]);
        let now = |d: &Dim| get(d).unwrap_or(self.old[*d]);
        let whole = |n: i64| u64::try_from(n).map_err(|_| "would be of a negative size".to_owned());
        Ok(match rule {
            Rule::Fixed(_) => vec![],
            Rule::Sum(out, parts, plus) if !guess => {
                let sum: i64 = parts.iter().map(|d| now(d) as i64).sum::<i64>() + plus;
                match (parts.iter().any(changed), changed(out), &parts[..]) {
                    (true, _, _) if get(out).is_none() => vec![(*out, whole(sum)?)],
                    (false, true, [one]) => vec![(*one, whole(now(out) as i64 - plus)?)],
                    _ => vec![],
                }
            }
            Rule::Part(out, x, start, step) if !guess && changed(x) => {
                vec![(*out, whole((now(x) as i64 - start + step - 1) / step)?)]
            }
            Rule::Product(a, b) => {
                let product = |all: &[Dim]| all.iter().map(now).product::<u64>();
                let (from, to) = match (product(a), product(b)) {
                    (p, q) if p == q => return Ok(vec![]),
                    _ if a.iter().any(changed) && !b.iter().any(changed) => (a, b),
                    _ if b.iter().any(changed) && !a.iter().any(changed) => (b, a),
                    _ => return Ok(vec![]),
                };
                let free: Vec<Dim> = to.iter().copied().filter(|d| get(d).is_none()).collect();
                // Among several it is the one of the size that changed, or else the first.
                let like = |d: &&Dim| from.iter().any(|f| changed(f) && self.old[*f] == self.old[**d]);
                let one = match &free[..] {
                    [one] => Some(one),
                    _ if guess => free.iter().find(like).or(free.first()),
                    _ => None,
                };
                let Some(one) = one else { return Ok(vec![]) };
                let rest: u64 = to.iter().filter(|d| self.root(**d) != self.root(*one)).map(now).product();
                match product(from).checked_rem(rest) {
                    Some(0) => vec![(*one, product(from) / rest)],
                    _ => return Err(format!("splits what does not divide by {rest}")),
                }
            }
            _ => vec![],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"module @xlazy {
  func.func public @main(%1: tensor<64x12xf32>, %2: tensor<12x4xf32> {tf.aliasing_output = 1 : i32}, %3: tensor<64xi64>, %4: tensor<2xf32>) -> (tensor<f32>, tensor<12x4xf32>, tensor<64x4xf32>) {
    %5 = "stablehlo.slice"(%4) {start_indices = array<i64: 0>, limit_indices = array<i64: 1>, strides = array<i64: 1>} : (tensor<2xf32>) -> tensor<1xf32>
    %6 = "stablehlo.dot_general"(%1, %2) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<64x12xf32>, tensor<12x4xf32>) -> tensor<64x4xf32>
    %7 = "stablehlo.reshape"(%6) : (tensor<64x4xf32>) -> tensor<256xf32> loc("reshape"("xlazy":1:0))
    %8 = "stablehlo.slice"(%7) {start_indices = array<i64: 16>, limit_indices = array<i64: 256>, strides = array<i64: 2>} : (tensor<256xf32>) -> tensor<120xf32>
    %9 = stablehlo.constant dense<0.0e0> : tensor<f32>
    %10 = stablehlo.reduce(%8 init: %9) applies stablehlo.add across dimensions = [0] : (tensor<120xf32>, tensor<f32>) -> tensor<f32>
    %11 = "stablehlo.reshape"(%7) : (tensor<256xf32>) -> tensor<8x8x4xf32>
    %12 = "stablehlo.reshape"(%3) : (tensor<64xi64>) -> tensor<64x1xi64>
    return %10, %2, %6 : tensor<f32>, tensor<12x4xf32>, tensor<64x4xf32>
  }
}
"#;

    #[test]
    fn sizes_follow_the_batch() {
        let sizes = Sizes::read(TEXT).unwrap();
        let batch = sizes.batch().unwrap();
        assert_eq!(batch.inputs, [(0, "64x12xf32".to_owned()), (2, "64xi64".to_owned())]);
        assert_eq!(sizes.over(&batch, 64).unwrap(), TEXT);
        let new = sizes.over(&batch, 96).unwrap();
        for line in [
            "@main(%1: tensor<96x12xf32>, %2: tensor<12x4xf32> {",
            "-> (tensor<f32>, tensor<12x4xf32>, tensor<96x4xf32>) {",
            "tensor<12x4xf32>) -> tensor<96x4xf32>",
            "(tensor<96x4xf32>) -> tensor<384xf32>",
            "limit_indices = array<i64: 384>, strides = array<i64: 2>} : (tensor<384xf32>) -> tensor<184xf32>",
            "(tensor<384xf32>) -> tensor<12x8x4xf32>",
            "(tensor<96xi64>) -> tensor<96x1xi64>",
            "(tensor<2xf32>) -> tensor<1xf32>",
        ] {
            assert!(new.contains(line), "{line}: {new}");
        }
        let (line, why) = sizes.over(&batch, 100 + 1).unwrap_err();
        assert!(line.contains("%11") && why.contains("divide"), "{line} {why}");
    }

    #[test]
    fn what_has_a_size_of_its_own_is_refused_with_its_line() {
        let part = TEXT.replace(
            "limit_indices = array<i64: 256>, strides = array<i64: 2>",
            "limit_indices = array<i64: 136>, strides = array<i64: 1>",
        );
        let sizes = Sizes::read(&part).unwrap();
        let (line, why) = sizes.over(&sizes.batch().unwrap(), 128).unwrap_err();
        assert!(line.contains("%8") && why.contains("256"), "{line} {why}");
        assert!(Sizes::read("module {\n func.func @main(%a: tensor<2xf32>) {\n what\n").is_err());
    }
}
