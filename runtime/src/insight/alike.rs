//! What is said of the compilations of a cell, with what is equal said once: also where only numbers differ that run through,
//! such as sizes 5, 6, 7.
use super::render::Part;
use super::report::{Compilation, Unrolled};

/// One sentence, and the compilations that it is about.
pub(super) struct Told<'a> {
    pub sentence: String,
    pub of: Vec<&'a Compilation>,
    /// What could be written otherwise, be it the first program of its kind.
    advice: bool,
}

impl Told<'_> {
    /// A program that was compiled again is news, be it that an earlier session paid for it: what a cell teaches is the same on
    /// another day. A first one is detail.
    pub fn is_news(&self) -> bool {
        self.advice || self.of.iter().any(|c| c.why.is_some())
    }
}

/// All that is to be said of these, in the order of the first of each.
pub(super) fn told(all: &[Compilation]) -> Vec<Told<'_>> {
    let mut groups: Vec<(String, Vec<Said>, Vec<&Compilation>)> = Vec::new();
    for c in all {
        let said = Said::of(c.parts());
        let key = said.texts.join("#");
        match groups.iter_mut().find(|g| g.0 == key) {
            Some(group) => {
                group.1.push(said);
                group.2.push(c);
            }
            None => groups.push((key, vec![said], vec![c])),
        }
    }
    let said = |(_, sentences, of): (_, Vec<Said>, Vec<_>)| Told {
        sentence: together(&sentences) + &in_code(&of),
        of,
        advice: false,
    };
    let mut out: Vec<Told> = groups.into_iter().map(said).collect();
    // Of a loop that was compiled for several numbers of rounds the last one is enough.
    let mut loops: Vec<(&Unrolled, Vec<&Compilation>)> = Vec::new();
    for c in all {
        let Some(unrolled) = &c.unrolled else { continue };
        match loops.iter_mut().find(|(other, _)| other.at == unrolled.at) {
            Some((last, of)) => {
                *last = unrolled;
                of.push(c);
            }
            None => loops.push((unrolled, vec![c])),
        }
    }
    out.extend(loops.into_iter().map(|(unrolled, of)| Told { sentence: unrolled.sentence(), of, advice: true }));
    out
}

/// Where the fix is told in code, as the last of these has it.
fn in_code(of: &[&Compilation]) -> String {
    let has_code = |c: &&&Compilation| c.why.as_ref().is_some_and(|why| !why.edits.is_empty());
    of.iter().rev().find(has_code).map_or(String::new(), |c| format!(" In code: `%why {}`.", c.number))
}

/// What was said: taken apart at its numbers and at what to do, with a text before each and one behind the last.
struct Said {
    texts: Vec<String>,
    between: Vec<Between>,
}

enum Between {
    /// Numbers, or lists of them: `5, 6, 7`.
    Numbers(String),
    Fix(String),
}

impl Said {
    fn of(parts: Vec<Part>) -> Said {
        let mut said = Said { texts: vec![String::new()], between: vec![] };
        for part in parts {
            match part {
                Part::Text(text) => said.text(&text),
                Part::Place(at) => said.end().push_str(&at),
                Part::Fix(fix) => said.then(Between::Fix(fix)),
            }
        }
        said
    }

    fn end(&mut self) -> &mut String {
        self.texts.last_mut().expect("one at least")
    }

    fn then(&mut self, between: Between) {
        self.between.push(between);
        self.texts.push(String::new());
    }

    fn text(&mut self, mut rest: &str) {
        while let Some(c) = rest.chars().next() {
            // A part of a name is none.
            let word = self.end().ends_with(|c: char| c.is_alphanumeric() || c == '_');
            let length = if word { 0 } else { list(rest) };
            if length > 0 {
                self.then(Between::Numbers(rest[..length].to_owned()));
                rest = &rest[length..];
            } else {
                self.end().push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
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

/// The sentences as one, which differ in their numbers alone, and in what to do.
fn together(all: &[Said]) -> String {
    let last = all.last().expect("one at least");
    let mut out = if all.len() > 1 { format!("{} times: ", all.len()) } else { String::new() };
    for (i, text) in last.texts.iter().enumerate() {
        out += text;
        match last.between.get(i) {
            Some(Between::Numbers(number)) => {
                let all = all.iter().filter_map(|said| match &said.between[i] {
                    Between::Numbers(number) => Some(&**number),
                    Between::Fix(_) => None,
                });
                out += &range(all).unwrap_or_else(|| number.clone());
            }
            Some(Between::Fix(fix)) => out += fix,
            None => {}
        }
    }
    out
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

    /// Something said of a size at line 3.
    fn one(what: &str, is: &str, fix: &str) -> Said {
        let fix = Part::Fix(format!(". Fix: {fix}."));
        Said::of(vec![
            Part::Text(format!("{what} (")),
            Part::Place("line 3".into()),
            Part::Text(format!(") is {is}")),
            fix,
        ])
    }

    #[test]
    fn numbers_that_run_through_are_told_as_a_range() {
        let size = |n: usize, sizes: &str| one("`x1`", &format!("f32[{n},8], was f32[4,8]"), sizes);
        let all = [size(5, "4, 5"), size(6, "4, 5, 6"), size(7, "4, 5, 6, 7")];
        assert_eq!(together(&all), "3 times: `x1` (line 3) is f32[5…7,8], was f32[4,8]. Fix: 4, 5, 6, 7.");
        assert_eq!(together(&all[..1]), "`x1` (line 3) is f32[5,8], was f32[4,8]. Fix: 4, 5.");
        assert_eq!(
            together(&[one("eps", "0.5", ""), one("eps", "0.25", "")]),
            "2 times: eps (line 3) is 0.25…0.5. Fix: ."
        );
        // Other places, names and texts are others; what to do may be.
        let key = |said: Said| said.texts.join("#");
        let at = |place: &str| key(Said::of(vec![Part::Place(place.into())]));
        assert_ne!(at("line 3"), at("line 4"));
        assert_ne!(key(one("`x1`", "", "")), key(one("`x2`", "", "")));
        assert_eq!(key(one("`x`", "5 of 4, 5", "drop 6")), key(one("`x`", "6 of 4, 5, 6", "drop it")));
    }
}
