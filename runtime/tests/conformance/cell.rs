//! A case as a cell that can be pasted into a notebook: its tensors as literals, and the call as the mapping makes it, with what
//! it reads of the case put in its place.
use crate::case::{Arg, Case, Host, Numbers};
use crate::options::NAMED;
use xlazy::prelude::*;

const MAPPINGS: &[&str] = &[
    include_str!("calls.rs"),
    include_str!("more.rs"),
    include_str!("matrices.rs"),
    include_str!("layers.rs"),
    include_str!("spectra.rs"),
];
const HELPERS: &str = include_str!("options.rs");
/// Helpers call one another so deep at most.
const DEPTH: usize = 8;

/// The cell; `line` is where the mapping made the result, `wrong` what came out otherwise than expected.
pub fn cell(case: &Case, line: Option<u32>, wrong: &str) -> String {
    let mut out = String::from("use xlazy::prelude::*;\n");
    let mut named: Vec<(String, &Arg)> = case.args.iter().enumerate().map(|(i, a)| (format!("x{i}"), a)).collect();
    let mut keywords: Vec<(String, &Arg)> = case.kwargs.iter().map(|(k, a)| (k.clone(), a)).collect();
    keywords.sort_by(|a, b| a.0.cmp(&b.0));
    named.extend(keywords);
    for (name, arg) in &named {
        declare(&mut out, name, arg);
    }
    let call = arm(&case.name, line).map(|text| Written { case }.expression(&text, DEPTH));
    match call {
        Some(call) if !call.contains("c.") && !call.contains("(c") && !call.contains("Arg::") => {
            out += &format!("let y = {call};\n");
            out += &format!("// {wrong}\n");
            if let Some((k, weight)) = gradient(case, wrong) {
                let leaves = leaves(&named).join(", ");
                out += &format!("let weight = {weight};\n");
                return out + &format!("grad(&(&y * &weight).sum(), &[{leaves}])[{k}].clone().unwrap()\n");
            }
        }
        call => {
            return out
                + &format!("// {wrong}\n// as the test maps it: {}\n", call.unwrap_or_else(|| case.name.clone()));
        }
    }
    out + "y\n"
}

/// Which gradient differs, and the weight of the one result.
fn gradient(case: &Case, wrong: &str) -> Option<(usize, String)> {
    let k = wrong.strip_prefix("gradient ")?.split([':', ' ']).next()?.parse().ok()?;
    let [weight] = &case.weights[..] else { return None };
    let real = case.leaves.iter().all(|t| !t.dtype().is_complex());
    real.then(|| (k, host_text(weight)))
}

/// The names of tensors that gradients are asked for.
fn leaves(named: &[(String, &Arg)]) -> Vec<String> {
    fn of(name: &str, arg: &Arg) -> Vec<String> {
        match arg {
            Arg::Tensor(t) if t.requires_grad() => vec![format!("&{name}")],
            Arg::List(items) => items.iter().enumerate().flat_map(|(i, a)| of(&format!("{name}_{i}"), a)).collect(),
            _ => vec![],
        }
    }
    named.iter().flat_map(|(name, arg)| of(name, arg)).collect()
}

fn declare(out: &mut String, name: &str, arg: &Arg) {
    match arg {
        Arg::Tensor(t) => *out += &format!("let {name} = {};\n", tensor_text(t)),
        Arg::List(items) => items.iter().enumerate().for_each(|(i, a)| declare(out, &format!("{name}_{i}"), a)),
        _ => {}
    }
}

fn tensor_text(t: &Tensor) -> String {
    let host = Host::of(t);
    let mut text = numbers(&host);
    if host.pairs && t.dtype() == C64 {
        text += ".float()";
    }
    text += &match host.pairs {
        true => ".view_as_complex()".to_owned(),
        false => format!(".to({:?})", t.dtype()),
    };
    if t.requires_grad() { text + ".requires_grad_(true)" } else { text }
}

fn host_text(host: &Host) -> String {
    format!("{}.to({:?})", numbers(host), host.dtype)
}

/// Elements as they are on the host, of the widest dtype.
fn numbers(host: &Host) -> String {
    let float = |v: &f64| match v {
        v if v.is_nan() => "f64::NAN".to_owned(),
        v if v.is_infinite() => if *v > 0.0 { "f64::INFINITY" } else { "f64::NEG_INFINITY" }.to_owned(),
        v => format!("{v:?}"),
    };
    let (kind, items): (&str, Vec<String>) = match &host.data {
        Numbers::Floats(v) => ("f64", v.iter().map(float).collect()),
        Numbers::Ints(v) => ("i64", v.iter().map(i64::to_string).collect()),
    };
    format!("Tensor::from_vec::<{kind}>(vec![{}], {:?})", items.join(", "), host.shape)
}

/// The text behind the arrow of the arm that maps a name: the one that has the line, or else the first.
fn arm(name: &str, line: Option<u32>) -> Option<String> {
    let mut first = None;
    for source in MAPPINGS {
        let mut at = 0;
        while let Some(found) = source[at..].find(" => ") {
            let (arrow, behind) = (at + found, at + found + 4);
            at = behind;
            let start = source[..arrow].rfind('\n').map_or(0, |n| n + 1);
            let pattern = &source[start..arrow];
            let (pattern, _guard) = pattern
                .split_once(" if ")
                .map_or((pattern, ""), |(p, g)| if p.trim() == "name" { (g, "") } else { (p, g) });
            let prefix = pattern.split_once("starts_with(\"").and_then(|(_, p)| p.split('"').next());
            let fits = pattern.contains(&format!("\"{name}\"")) || prefix.is_some_and(|p| name.starts_with(p));
            if !fits {
                continue;
            }
            let text = until_comma(&source[behind..]);
            let row = |end: usize| source[..end].matches('\n').count() as u32 + 1;
            if line.is_some_and(|l| (row(start)..=row(behind + text.len())).contains(&l)) {
                return Some(text.to_owned());
            }
            first.get_or_insert_with(|| text.to_owned());
        }
    }
    first
}

/// An expression, up to the comma or the bracket behind it.
fn until_comma(text: &str) -> &str {
    let (mut depth, mut quoted, mut before) = (0i32, false, ' ');
    for (i, ch) in text.char_indices() {
        match ch {
            '"' if before != '\\' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => return &text[..i],
            ')' | ']' | '}' => {
                depth -= 1;
                if depth == 0 && ch == '}' && text.starts_with('{') {
                    return &text[..=i];
                }
            }
            ',' if depth == 0 => return &text[..i],
            _ => {}
        }
        before = ch;
    }
    text
}

/// The arguments of a call whose bracket is open, and what is behind it.
fn arguments(text: &str) -> (Vec<&str>, &str) {
    let (mut all, mut rest) = (vec![], text);
    loop {
        let one = until_comma(rest);
        let behind = &rest[one.len()..];
        if !one.trim().is_empty() {
            all.push(one.trim());
        }
        match behind.strip_prefix(',') {
            Some(more) => rest = more,
            None => return (all, behind.get(1..).unwrap_or_default()),
        }
    }
}

struct Written<'a> {
    case: &'a Case,
}

impl Written<'_> {
    /// An expression of the mapping with all that it reads of the case put in.
    fn expression(&self, text: &str, depth: usize) -> String {
        let text = text.trim();
        // a block that only returns several results
        let returned = text.strip_prefix('{').and_then(|t| t.trim().strip_prefix("return Some("));
        let text = returned.map_or(text, |t| arguments(t).0.first().copied().unwrap_or(t));
        let text = text.strip_prefix("return Some(").map_or(text, |t| arguments(t).0[0]);
        let mut out = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            let begins = !out.ends_with(|ch: char| ch.is_alphanumeric() || ch == '_' || ch == '.');
            if let Some(more) = rest.strip_prefix("x()").filter(|_| begins) {
                out += "x0";
                rest = more;
            } else if let Some(more) = rest.strip_prefix("pair(").filter(|_| begins) {
                let (of, behind) = arguments(more);
                out += &self.expression(of[0], depth);
                rest = behind;
            } else if let Some((read, behind)) = rest.strip_prefix("c.").filter(|_| begins).and_then(|r| self.read(r)) {
                out += &read;
                rest = behind;
            } else if let Some((inlined, behind)) = self.helper(rest, depth).filter(|_| begins) {
                out += &inlined;
                rest = behind;
            } else {
                let ch = rest.chars().next().expect("not empty");
                out.push(ch);
                rest = &rest[ch.len_utf8()..];
            }
        }
        out
    }

    /// What `c.…` gives, written out.
    fn read<'t>(&self, text: &'t str) -> Option<(String, &'t str)> {
        if let Some(behind) = text.strip_prefix("args.len()") {
            return Some((self.case.args.len().to_string(), behind));
        }
        if let Some(behind) = text.strip_prefix("kwargs.contains_key(") {
            let (args, behind) = arguments(behind);
            return Some((self.case.kwargs.contains_key(args[0].trim_matches('"')).to_string(), behind));
        }
        let (method, behind) = text.split_once('(')?;
        let (args, behind) = arguments(behind);
        let place = || -> Option<(usize, &str)> {
            let i = if args.first()?.trim() == "NAMED" { NAMED } else { args.first()?.parse().ok()? };
            Some((i, args.get(1).map_or("", |n| n.trim_matches('"'))))
        };
        let default = || args.get(2).map_or(String::new(), |d| self.expression(d, 1));
        let written = match method {
            "dtype" => self.case.dtype().map_or("None::<DType>".to_owned(), |d| format!("Some({d:?})")),
            "rest" => ints(&self.case.rest(place()?.0)),
            "tensors" => match self.case.args.get(place()?.0)? {
                Arg::List(l) => {
                    format!("[{}]", (0..l.len()).map(|k| format!("&x{}_{k}", args[0])).collect::<Vec<_>>().join(", "))
                }
                _ => format!("[&x{}]", args[0]),
            },
            "dims" | "dims_or" => {
                let (i, name) = place()?;
                match (self.case.dims(i, name), method) {
                    (dims, "dims_or") if dims.is_empty() => format!("vec![{} as i64]", default()),
                    (dims, _) => ints(&dims),
                }
            }
            "get" => {
                let (i, name) = place()?;
                if self.case.get(i, name).is_some() { "Some(())" } else { "None::<()>" }.to_owned()
            }
            "str" => {
                let (i, name) = place()?;
                format!("String::from({:?})", self.case.str(i, name, args.get(2)?.trim_matches('"')))
            }
            "t" | "tensor" | "operand" | "scalar" | "int" | "float" | "flag" => {
                let (i, name) = place()?;
                let variable = if self.case.kwargs.contains_key(name) { name.to_owned() } else { format!("x{i}") };
                match (self.case.get(i, name), method) {
                    (Some(Arg::Tensor(_)), "tensor") => format!("Some(&{variable})"),
                    (Some(Arg::Tensor(_)), "int") => format!("{variable}.item_i64()"),
                    (Some(Arg::Tensor(_)), "float") => format!("{variable}.item()"),
                    (Some(Arg::Tensor(_)), _) => format!("(&{variable})"),
                    (_, "tensor") => "None".to_owned(),
                    (Some(_), "int") => format!("{}i64", self.case.int(i, name, 0)),
                    (Some(_), "flag") => self.case.flag(i, name, false).to_string(),
                    (Some(Arg::Float(v)), _) if !v.is_finite() => format!("(f64::NAN + {:?} as f64)", v.to_string()),
                    (Some(_), "float") => format!("{:?}f64", self.case.float(i, name, 0.0)),
                    (Some(Arg::Int(v)), _) => v.to_string(),
                    (Some(Arg::Bool(v)), _) => v.to_string(),
                    (Some(Arg::Float(v)), _) => format!("{v:?}"),
                    (None, "int" | "float" | "flag") => default(),
                    _ => return None,
                }
            }
            _ => return None,
        };
        Some((written, behind))
    }

    /// A helper's body in place of its call.
    fn helper<'t>(&self, text: &'t str, depth: usize) -> Option<(String, &'t str)> {
        let name: String = text.chars().take_while(|ch| ch.is_alphanumeric() || *ch == '_').collect();
        let behind = text[name.len()..].strip_prefix("(c")?;
        let (args, behind) = arguments(behind.strip_prefix(',').unwrap_or(behind));
        let (_, source) = HELPERS.split_once(&format!("fn {name}(c: &Case")).filter(|_| depth > 0)?;
        let (parameters, source) = arguments(source.strip_prefix(',').unwrap_or(source));
        let (_, body) = source.split_once('{')?;
        let body = until_comma(body);
        let mut inner = body.to_owned();
        let mut lets = String::new();
        for (parameter, arg) in parameters.iter().zip(&args) {
            let (parameter, ty) = parameter.split_once(':')?;
            match arg.starts_with('"') || arg.parse::<i64>().is_ok() || *arg == "NAMED" {
                true => inner = replaced(&inner, parameter, arg),
                false => {
                    let ty = if ty.contains("impl") { String::new() } else { format!(":{ty}") };
                    lets += &format!("let {parameter}{ty} = {}; ", self.expression(arg, depth - 1));
                }
            }
        }
        Some((format!("{{ {lets}{} }}", self.expression(inner.trim(), depth - 1)), behind))
    }
}

/// A name replaced where it stands by itself.
fn replaced(text: &str, name: &str, by: &str) -> String {
    let word = |ch: char| ch.is_alphanumeric() || ch == '_';
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        let (before, behind) = (&rest[..at], &rest[at + name.len()..]);
        out += before;
        out += if out.ends_with(word) || behind.starts_with(word) { name } else { by };
        rest = behind;
    }
    out + rest
}

fn ints(all: &[i64]) -> String {
    if all.is_empty() {
        return "Vec::<i64>::new()".into();
    }
    format!("vec![{}i64]", all.iter().map(i64::to_string).collect::<Vec<_>>().join(", "))
}
