//! What is said of the compilations of a cell, with what is equal said once: also where only numbers differ that run through,
//! such as sizes 5, 6, 7.
use super::report::Compilation;
use xlazy_core::run::Origin;

/// One sentence, and the compilations that it is about.
pub(super) struct Told<'a> {
    pub sentence: String,
    pub of: Vec<&'a Compilation>,
}

impl Told<'_> {
    /// A program that was compiled again is news; a first one is detail, and so is one that cost no compilation.
    pub fn is_news(&self) -> bool {
        self.of.iter().any(|c| c.why.is_some() && c.origin == Origin::Compiled)
    }
}

/// All that is to be said of these, in the order of the first of each.
pub(super) fn told(all: &[Compilation]) -> Vec<Told<'_>> {
    let mut groups: Vec<(String, Vec<Said>, Vec<&Compilation>)> = Vec::new();
    for c in all {
        let said = Said::of(&c.sentence());
        let besides = c.why.iter().flat_map(|why| &why.also).map(|why| why.class.name());
        // Those that were read from the disk are told apart.
        let key: Vec<&str> =
            std::iter::once(c.origin.name()).chain(besides).chain(said.texts.iter().map(|t| &**t)).collect();
        let key = key.join("#");
        match groups.iter_mut().find(|g| g.0 == key) {
            Some(group) => {
                group.1.push(said);
                group.2.push(c);
            }
            None => groups.push((key, vec![said], vec![c])),
        }
    }
    groups.into_iter().map(|(_, sentences, of)| Told { sentence: together(&sentences) + &in_code(&of), of }).collect()
}

/// Where the fix is told in code, as the last of these has it.
fn in_code(of: &[&Compilation]) -> String {
    let has_code = |c: &&&Compilation| c.why.as_ref().is_some_and(|why| !why.edits.is_empty());
    of.iter().rev().find(has_code).map_or(String::new(), |c| format!(" In code: `%why {}`.", c.number))
}

/// What stands before it is said of each compilation, and what stands behind it is what to do, which the last one knows best.
const FIX: &str = " Fix: ";

/// A sentence: what happened, taken apart at its numbers (a text before each, and one behind the last), and what to do.
struct Said {
    texts: Vec<String>,
    /// Numbers, or lists of them: `5, 6, 7`.
    numbers: Vec<String>,
    fix: String,
}

impl Said {
    fn of(sentence: &str) -> Said {
        let (mut rest, fix) = sentence.split_at(sentence.find(FIX).unwrap_or(sentence.len()));
        let (mut texts, mut numbers) = (vec![String::new()], Vec::new());
        while let Some(c) = rest.chars().next() {
            let before = texts.last_mut().expect("one at least");
            // Neither a part of a name nor the number of a line, which is another place.
            let word = before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
            let place = before.ends_with("line ") || before.ends_with("cell ");
            let length = if word || place { 0 } else { list(rest) };
            if length > 0 {
                numbers.push(rest[..length].to_owned());
                texts.push(String::new());
                rest = &rest[length..];
            } else {
                before.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
        Said { texts, numbers, fix: fix.to_owned() }
    }
}

/// How long a number is that the text begins with.
fn number(text: &str) -> usize {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(text);
    let fraction = text[whole..].strip_prefix('.').map_or(0, digits);
    if whole > 0 && fraction > 0 { whole + 1 + fraction } else { whole }
}

/// How long a list of numbers is that the text begins with.
fn list(text: &str) -> usize {
    let mut end = number(text);
    while let Some(next) = text[end..].strip_prefix(", ").map(number).filter(|n| *n > 0 && end > 0) {
        end += 2 + next;
    }
    end
}

/// The sentences as one, which differ in their numbers alone.
fn together(all: &[Said]) -> String {
    let last = all.last().expect("one at least");
    let mut out = if all.len() > 1 { format!("{} times: ", all.len()) } else { String::new() };
    for (i, text) in last.texts.iter().enumerate() {
        out += text;
        if let Some(number) = last.numbers.get(i) {
            out += &range(all.iter().map(|said| &*said.numbers[i])).unwrap_or_else(|| number.clone());
        }
    }
    out + &last.fix
}

/// The least and the greatest of numbers that differ.
fn range<'a>(all: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut all: Vec<(f64, &str)> = all.map(|n| Some((n.parse().ok()?, n))).collect::<Option<_>>()?;
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (least, most) = (all.first()?, all.last()?);
    (least.0 < most.0).then(|| format!("{}…{}", least.1, most.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(all: &[&str]) -> String {
        together(&all.iter().map(|s| Said::of(s)).collect::<Vec<_>>())
    }

    #[test]
    fn numbers_that_run_through_are_told_as_a_range() {
        let one = |n: usize, sizes: &str| {
            format!(
                "Compiled again: `x1` (cell 2, line 3) is f32[{n},8], was f32[4,8]. Fix: dimension 0 has been {sizes}."
            )
        };
        let all = [one(5, "4, 5"), one(6, "4, 5, 6"), one(7, "4, 5, 6, 7")];
        let all: Vec<&str> = all.iter().map(|s| &**s).collect();
        let together = "3 times: Compiled again: `x1` (cell 2, line 3) is f32[5…7,8], was f32[4,8]. Fix: dimension 0 has been 4, 5, 6, 7.";
        assert_eq!(said(&all), together);
        assert_eq!(said(&all[..1]), all[0]);
        assert_eq!(said(&["eps is 0.5", "eps is 0.25"]), "2 times: eps is 0.25…0.5");
        // Other places, names and texts are others.
        let key = |s: &str| Said::of(s).texts.join("#");
        assert_ne!(key("at line 3"), key("at line 4"));
        assert_ne!(key("`x1`"), key("`x2`"));
        assert_eq!(key("f32[5,8] of 4, 5"), key("f32[6,9] of 4, 5, 6"));
    }
}
