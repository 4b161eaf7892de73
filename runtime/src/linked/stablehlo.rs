//! The text of a StableHLO program as rows: of which ops each is, and what each would move to and from memory alone.
use crate::aot::program::{bytes, types};
use std::collections::HashMap;
use xlazy_core::ir::Mark;

/// A line of the text, or one parameter of its function.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    pub text: String,
    pub depth: u32,
    /// The step that it is from.
    pub step: Option<usize>,
    /// The parameters that it is, or that it takes apart.
    pub parameter: Option<usize>,
    /// Which of a packed parameter's numbers it takes out, from 0.
    pub number: Option<usize>,
    /// Bytes to and from memory if it ran alone; `None` of what runs nothing.
    pub alone: Option<u64>,
}

/// The lines of `text`.
pub(super) fn lines(text: &str, marks: &[Mark]) -> Vec<Line> {
    let mut out: Vec<Line> = Vec::new();
    let (mut at, mut part, mut depth) = (0usize, 0usize, 0u32);
    let mut sizes: HashMap<String, u64> = HashMap::new();
    let mut arguments: Vec<String> = Vec::new();
    // Whether what stands inside of each open brace runs by itself, and the operands of an op whose type comes behind it.
    let mut open: Vec<(bool, Vec<String>)> = Vec::new();
    let mut unpacked: HashMap<usize, usize> = HashMap::new();
    let mut parameter = None;
    let in_main = |out: &[Line]| !out.iter().rev().any(|l: &Line| l.text.starts_with("func.func private"));
    for line in text.split_inclusive('\n') {
        let begins = at;
        at += line.len();
        while marks.get(part).is_some_and(|m| m.to as usize <= begins) {
            part += 1;
        }
        let step = marks.get(part).is_some_and(|m| m.from as usize <= begins).then_some(part);
        let body = line.trim();
        if body.is_empty() {
            continue;
        }
        let closes = body.starts_with('}');
        let operands = match (closes, open.last()) {
            (true, Some((_, held))) => held.clone(),
            _ => names(body.split_once(" = ").map_or(body, |(_, right)| right)),
        };
        if closes {
            depth = depth.saturating_sub(1);
            open.pop();
        }
        if body.starts_with("func.func public") {
            for (n, row) in head(body).into_iter().enumerate() {
                let argument = row.starts_with('%').then_some(arguments.len());
                if let Some(name) = argument.and_then(|_| row.split(':').next()) {
                    sizes.insert(name.to_owned(), types(&row).filter_map(bytes).sum());
                    arguments.push(name.to_owned());
                }
                let deeper = depth + u32::from(n > 0 && row.starts_with('%'));
                out.push(Line { text: row, depth: deeper, parameter: argument, ..Line::default() });
            }
            open.push((true, vec![]));
            depth += 1;
            continue;
        }
        let defined = body.split_once(" = ").map(|(name, _)| name).filter(|n| n.starts_with('%'));
        // Before the first op stand the numbers, taken out of what they travel in.
        if step.is_none() && part == 0 && defined.is_some() {
            let of = operands.iter().find_map(|o| arguments.iter().position(|a| a == o));
            if let Some(of) = of {
                *unpacked.entry(of).or_default() += 1;
                parameter = Some(of);
            }
        } else {
            parameter = None;
        }
        let number = parameter.and_then(|p| unpacked.get(&p)).map(|n| n - 1);
        let opens = body.ends_with('{');
        let runs = open.last().is_none_or(|(runs, _)| *runs);
        let result = result_bytes(body);
        if let Some(name) = defined {
            // A broadcast value is read where it is from, and a constant of one number is that number.
            let held = match () {
                () if body.contains("stablehlo.broadcast_in_dim") => {
                    operands.first().and_then(|o| sizes.get(o)).copied()
                }
                () if body.contains("stablehlo.constant dense<") && !body.contains("dense<[") => {
                    types(body).last().and_then(|ty| bytes(ty.rsplit('x').next()?))
                }
                () => None,
            };
            let held = held.unwrap_or(result).min(result);
            sizes.insert(name.split([':', ' ', ',']).next().unwrap_or(name).to_owned(), held);
        }
        let is_op = (defined.is_some() && !opens || closes && result > 0) && runs && in_main(&out);
        let alone = (is_op && number.is_none() && !is_free(body))
            .then(|| operands.iter().filter_map(|o| sizes.get(o)).fold(result, |n, &b| n.saturating_add(b)));
        out.push(Line { text: body.to_owned(), depth, step, parameter, number, alone });
        if opens {
            // What a loop or a branch holds runs; what a reduction applies is a part of it.
            let inside = runs && ["while", "case", "if", "module", "func.func"].iter().any(|w| body.contains(w));
            open.push((inside, operands));
            depth += 1;
        }
    }
    of_functions(&mut out);
    out
}

/// Constants are part of the program; a reshape or a broadcast gives another name to what is there, as a view does.
fn is_free(body: &str) -> bool {
    let free = ["constant", "reshape", "broadcast_in_dim", "tuple", "get_tuple_element"];
    body.contains("sdy.") || free.iter().any(|op| body.contains(&format!("stablehlo.{op}")))
}

/// Values that a line takes: each once.
fn names(code: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for (at, _) in code.match_indices('%') {
        let name: String = code[at + 1..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let name = format!("%{name}");
        if !out.contains(&name) {
            out.push(name);
        }
    }
    out
}

/// Bytes of what a line gives.
fn result_bytes(body: &str) -> u64 {
    let ty = body.rsplit_once("->").or(body.rsplit_once(" : ")).map_or("", |(_, ty)| ty);
    types(ty).filter_map(bytes).sum()
}

/// The head of a function, a row for each parameter.
fn head(body: &str) -> Vec<String> {
    let Some((front, rest)) = body.split_once('(') else { return vec![body.to_owned()] };
    let mut rows = vec![format!("{front}(")];
    let (mut depth, mut quoted, mut from) = (0i32, false, 0);
    for (at, c) in rest.char_indices() {
        match c {
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '<' | '{' | '[' => depth += 1,
            // The arrow's is no bracket.
            '>' if rest[..at].ends_with('-') => {}
            ')' if depth == 0 => {
                if !rest[from..at].trim().is_empty() {
                    rows.push(rest[from..at].trim().to_owned());
                }
                rows.push(rest[at..].to_owned());
                return rows;
            }
            ')' | '>' | '}' | ']' => depth -= 1,
            ',' if depth == 0 => {
                rows.push(rest[from..at].trim().to_owned() + ",");
                from = at + 1;
            }
            _ => {}
        }
    }
    vec![body.to_owned()]
}

/// What stands in a function belongs to the op that calls it.
fn of_functions(lines: &mut [Line]) {
    let mut callers: HashMap<String, usize> = HashMap::new();
    for line in lines.iter() {
        let Some(step) = line.step else { continue };
        if let Some((_, rest)) = line.text.split_once('@') {
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || "_.$".contains(*c)).collect();
            callers.entry(name).or_insert(step);
        }
    }
    let mut inside = None;
    for line in lines {
        if let Some(rest) = line.text.strip_prefix("func.func private @") {
            inside = callers.get(rest.split('(').next().unwrap_or_default()).copied();
        }
        if line.step.is_none() && line.parameter.is_none() {
            line.step = inside;
        }
        if inside.is_some() && line.depth == 1 && line.text == "}" {
            inside = None;
        }
    }
}
