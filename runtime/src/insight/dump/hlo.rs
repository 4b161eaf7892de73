//! HLO text: computations of one instruction a line, with `metadata={…}` that says where each is from.
use super::module::{Argument, Block, From, Line, Module, Op, Ty, Unread};
use std::collections::HashMap;

pub(super) fn read(text: &str) -> Result<Module, Unread> {
    let mut module = Module::default();
    let mut tables = Tables::default();
    let mut open: Option<(String, bool, Block)> = None;
    for (n, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line == "}" {
            if let Some((name, entry, block)) = open.take() {
                if entry {
                    module.main = name.clone();
                }
                module.functions.insert(name, block);
            }
            continue;
        }
        match &mut open {
            Some((_, _, block)) => instruction(line, n, block, &tables)?,
            None if line.starts_with("HloModule") => {
                let name = line["HloModule".len()..].trim_start().split([',', ' ']).next().unwrap_or_default();
                // `IrToHlo.52`: a number that each has of its own.
                let number = name.rsplit_once('.').filter(|(_, n)| n.bytes().all(|b| b.is_ascii_digit()));
                module.name = number.map_or(name, |(stem, _)| stem).to_owned();
                module.donated = donated(line);
            }
            None if line.ends_with('{') && (!line.contains('=') || line.contains("->")) => {
                let entry = line.starts_with("ENTRY");
                let name = line.trim_start_matches("ENTRY").trim_start();
                let name = name.split([' ', '(', '{']).next().unwrap_or_default();
                open = Some((plain(name), entry, Block { line: n, ..Block::default() }));
            }
            None => tables.line(line),
        }
    }
    if let Some((name, _, block)) = open {
        return Err(Unread { line: block.line, why: format!("the computation `{name}` has no end") });
    }
    match module.main.is_empty() {
        true => Err(Unread { line: 1, why: "it has no `ENTRY` computation".into() }),
        false => Ok(module),
    }
}

fn plain(name: &str) -> String {
    name.trim().trim_start_matches('%').to_owned()
}

/// `input_output_alias={ {0}: (2, {}, may-alias) }`: the parameters that are named there.
fn donated(line: &str) -> Vec<usize> {
    let Some((_, rest)) = line.split_once("input_output_alias={") else { return vec![] };
    let rest = &rest[..end_of(rest)];
    rest.split('(').skip(1).filter_map(|part| part.split(',').next()?.trim().parse().ok()).collect()
}

/// What stands outside of strings, each with the number of brackets that are open before it.
fn outside_strings(text: &str) -> impl Iterator<Item = (usize, char, usize)> {
    let (mut depth, mut string, mut escaped) = (0usize, false, false);
    text.char_indices().filter_map(move |(i, c)| {
        let (open, inside) = (depth, string);
        match c {
            _ if escaped => escaped = false,
            '\\' if string => escaped = true,
            '"' => string = !string,
            _ if string => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (!inside).then_some((i, c, open))
    })
}

/// Up to the bracket that closes what was opened before.
pub(super) fn end_of(text: &str) -> usize {
    let closes = |&(_, c, open): &(usize, char, usize)| open == 0 && matches!(c, ')' | ']' | '}');
    outside_strings(text).find(closes).map_or(text.len(), |(i, ..)| i)
}

/// The parts between commas that stand in no brackets.
pub(super) fn parts(text: &str) -> Vec<&str> {
    let commas = outside_strings(text).filter(|&(_, c, open)| c == ',' && open == 0).map(|(i, ..)| i);
    let (mut all, mut from) = (Vec::new(), 0);
    for comma in commas {
        all.push(text[from..comma].trim());
        from = comma + 1;
    }
    all.extend(Some(text[from..].trim()).filter(|t| !t.is_empty()));
    all
}

/// Where instructions are from, by number, as newer texts have it in front.
#[derive(Default)]
struct Tables {
    open: String,
    files: HashMap<u32, String>,
    places: HashMap<u32, Line>,
    /// The place of each frame, and the frame that called it.
    frames: HashMap<u32, (u32, u32)>,
}

impl Tables {
    fn line(&mut self, line: &str) {
        let Some((number, rest)) = line.split_once(' ').and_then(|(n, rest)| Some((n.parse::<u32>().ok()?, rest)))
        else {
            line.clone_into(&mut self.open);
            return;
        };
        let field = |name: &str| -> u32 {
            let (_, rest) = rest.split_once(name).unwrap_or_default();
            let digits = rest.trim_start_matches('=').split(|c: char| !c.is_ascii_digit()).next();
            digits.and_then(|d| d.parse().ok()).unwrap_or(0)
        };
        match self.open.as_str() {
            "FileNames" => drop(self.files.insert(number, rest.trim_matches('"').to_owned())),
            "FileLocations" => {
                let file = self.files.get(&field("file_name_id")).cloned().unwrap_or_default();
                self.places.insert(number, Line { file, line: field(" line"), column: field(" column") });
            }
            "StackFrames" => drop(self.frames.insert(number, (field("file_location_id"), field("parent_frame_id")))),
            _ => {}
        }
    }

    /// The lines of a frame and of those that called it.
    fn frames(&self, mut number: u32) -> Vec<Line> {
        /// Frames of a call chain that are looked at, which may be a circle.
        const FRAMES: usize = 64;
        let mut lines = Vec::new();
        for _ in 0..FRAMES {
            let Some((place, caller)) = self.frames.get(&number) else { break };
            lines.extend(self.places.get(place).cloned());
            // Counted from 1 more, so that 0 is none.
            match caller.checked_sub(1) {
                Some(caller) if caller != number => number = caller,
                _ => break,
            }
        }
        lines
    }
}

/// `ROOT %add.5 = f32[4]{0} add(%a, f32[4]{0} %b), dimensions={0}, metadata={…}`
fn instruction(line: &str, n: u32, block: &mut Block, tables: &Tables) -> Result<(), Unread> {
    if line.is_empty() || line.starts_with("//") {
        return Ok(());
    }
    let refuse = |why: &str| Err(Unread { line: n, why: why.into() });
    let root = line.starts_with("ROOT ");
    let Some((name, rest)) = line.trim_start_matches("ROOT ").split_once(" = ") else {
        return refuse("an instruction is expected: `name = type opcode(operands)`");
    };
    let rest = rest.trim_start();
    let ty_end = match rest.starts_with('(') {
        true => 1 + end_of(&rest[1..]) + 1,
        false => rest.find(' ').unwrap_or(rest.len()),
    };
    let (Some(ty), Some(rest)) = (rest.get(..ty_end), rest.get(ty_end..)) else {
        return refuse("the type has no end");
    };
    let rest = rest.trim_start();
    let Some((opcode, rest)) = rest.split_once('(') else { return refuse("an opcode and its operands are expected") };
    let end = end_of(rest);
    let (operands, rest) = (&rest[..end], rest.get(end + 1..).unwrap_or_default());
    let mut from = From::default();
    let mut op = Op { name: opcode.replace('-', "_"), results: vec![plain(name)], line: n, ..Op::default() };
    for (key, value) in parts(rest.trim_start_matches(',')).into_iter().filter_map(|part| part.split_once('=')) {
        match key {
            "metadata" => from = metadata(value, tables),
            "calls" | "to_apply" if matches!(op.name.as_str(), "fusion" | "call" | "async_start") => {
                op.calls = Some(plain(value))
            }
            "to_apply" | "body" | "condition" | "calls" => {
                op.attributes.push((format!("called {key}"), plain(value)));
            }
            "backend_config" | "frontend_attributes" | "sharding" | "origin" => {}
            _ => op.attributes.push((key.to_owned(), value.to_owned())),
        }
    }
    op.types = types(ty);
    if op.name == "parameter" {
        let number: usize = operands.trim().parse().unwrap_or(block.arguments.len());
        let ty = op.types.first().cloned().unwrap_or_default();
        let argument = Argument { name: plain(name), ty, from, line: n };
        block.arguments.insert(number.min(block.arguments.len()), argument);
        if root {
            block.returns = vec![plain(name)];
        }
        return Ok(());
    }
    match op.name.as_str() {
        "constant" => op.attributes.push(("value".into(), operands.to_owned())),
        // With its type in front in older texts.
        _ => op.inputs = parts(operands).into_iter().filter_map(|o| o.rsplit(' ').next()).map(plain).collect(),
    }
    op.from = from;
    if root {
        block.returns = op.results.clone();
    }
    block.ops.push(op);
    Ok(())
}

/// `{op_type="add" op_name="jit(f)/add" source_file="a.py" source_line=3}`
fn metadata(text: &str, tables: &Tables) -> From {
    let field = |name: &str| -> Option<&str> {
        let (_, rest) = text.split_once(name).filter(|(before, _)| before.ends_with(['{', ' ']))?;
        match rest.strip_prefix('"') {
            Some(rest) => rest.split('"').next(),
            None => rest.split([' ', '}']).next(),
        }
    };
    let number = |name: &str| field(name).and_then(|n| n.parse::<u32>().ok());
    let frames = match (field("source_file="), number("stack_frame_id=")) {
        (Some(file), _) => vec![Line { file: file.to_owned(), line: number("source_line=").unwrap_or(0), column: 0 }],
        (None, Some(frame)) => tables.frames(frame),
        (None, None) => vec![],
    };
    From::of(field("op_name=").map(str::to_owned), &frames)
}

/// `f32[4,8]{1,0}`, or those of a tuple.
pub(super) fn types(text: &str) -> Vec<Ty> {
    if let Some(inside) = text.strip_prefix('(') {
        return parts(&inside[..end_of(inside)]).into_iter().flat_map(types_of_one).collect();
    }
    types_of_one(text)
}

fn types_of_one(text: &str) -> Vec<Ty> {
    // `/*index=5*/f32[16,3]`
    let text = text.rsplit("*/").next().unwrap_or(text).trim_start_matches('(');
    let (element, rest) = text.split_once('[').unwrap_or((text, ""));
    let sizes = rest.split(']').next().unwrap_or_default();
    let size = |s: &str| s.trim().trim_start_matches("<=").parse().unwrap_or(-1);
    let sizes = if sizes.trim().is_empty() { vec![] } else { sizes.split(',').map(size).collect() };
    vec![Ty { element: element.trim().to_owned(), sizes }]
}
