//! What torch's functions and ours take, by name and type: how a call of torch's is written here.
use super::literals::{closure_that_is_given, is_whole, powers};
use super::ours::{Function, Ours, same};
use super::values::{alike, call_of, floats, is_dtype, is_number, plain};
use super::words::{Words, bare_list, compared, inside, is_one, listed, receiver, unquoted};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

/// Torch's signatures, one a line, written by `scripts/torch-names.py`.
const TORCH: &str = include_str!("torch.txt");

/// Torch's signatures by name; several may have one.
pub(super) static SIGNATURES: LazyLock<HashMap<&str, Vec<Torch>>> = LazyLock::new(|| {
    let mut out: HashMap<&str, Vec<Torch>> = HashMap::new();
    for line in TORCH.lines() {
        let Some((name, rest)) = line.split_once('(') else { continue };
        let words = Words::of(rest.strip_suffix(')').unwrap_or(rest));
        let part = |from, to| words.part(from, to).map_or("", |(_, range)| &words.text[range]);
        let one = |r: &Range<usize>| match (words.word(r.start + 1), part(r.start + 2, r.end)) {
            ("=", default) => (words.word(r.start), Some(default)),
            _ => (part(r.start, r.end), None),
        };
        let all = words.between_commas(0, words.len()).iter().map(one).collect();
        out.entry(name).or_default().push(Torch(all));
    }
    out
});

/// What torch takes where nothing is given, beside each name. Behind `*` all has to be named, and `*name` is any number.
pub(super) struct Torch(pub(super) Vec<(&'static str, Option<&'static str>)>);

/// What a call hands over.
#[derive(Clone, Debug, Default)]
pub(super) struct Given {
    pub plain: Vec<String>,
    pub named: Vec<(String, String)>,
}

/// A parameter of torch's with what it is in a call.
#[derive(Clone)]
struct Bound {
    name: &'static str,
    /// What stands in the call.
    given: Option<String>,
    default: Option<&'static str>,
}

impl Bound {
    fn value(&self) -> Option<&str> {
        self.given.as_deref().or(self.default)
    }
}

impl Torch {
    /// Whether it makes a tensor of sizes or numbers, and is about none that there is.
    pub(super) fn makes(&self) -> bool {
        const SIZES: [&str; 10] = ["size", "*size", "end", "start", "n", "data", "high", "low", "window_length", "row"];
        self.0.first().is_some_and(|(name, _)| SIZES.contains(name))
    }

    /// Whether it is about several tensors, which Python has in a list or one after the other.
    pub(super) fn joins(&self) -> bool {
        self.0.iter().any(|(name, _)| matches!(name.trim_start_matches('*'), "tensors" | "matrices" | "operands"))
    }

    fn bind(&self, given: &Given) -> Option<Vec<Bound>> {
        let mut plain = given.plain.iter();
        let (mut out, mut only_named) = (Vec::new(), false);
        for (name, default) in &self.0 {
            let name = match name.strip_prefix('*') {
                Some("") => {
                    only_named = true;
                    continue;
                }
                Some(list) => {
                    only_named = true;
                    let all: Vec<&str> = plain.by_ref().map(String::as_str).collect();
                    // One list is the list, lent or not.
                    let list_of = match all[..] {
                        [one] if bare_list(one).starts_with(['(', '[']) => bare_list(one).to_owned(),
                        [one] => format!("[{one}]"),
                        _ => format!("({})", all.join(", ")),
                    };
                    out.push(Bound { name: list, given: (!all.is_empty()).then_some(list_of), default: None });
                    continue;
                }
                None => *name,
            };
            let named = given.named.iter().find(|(of, _)| of == name || same(of, name));
            let given = match named {
                // By its other name it says yes or no.
                Some((by, value)) if by == "unbiased" && name != by => {
                    Some(u8::from(value.eq_ignore_ascii_case("true")).to_string())
                }
                Some((_, value)) => Some(value.clone()),
                None if only_named => None,
                None => plain.next().cloned(),
            };
            if given.is_none() && default.is_none() {
                return None;
            }
            out.push(Bound { name, given, default: *default });
        }
        let known = |(name, _): &(String, String)| out.iter().any(|b| b.name == name || same(name, b.name));
        (plain.next().is_none() && given.named.iter().all(known)).then_some(out)
    }
}

/// What torch's `None` is, where ours has a number.
fn nothing(bound: &Bound, ty: &str) -> Option<&'static str> {
    const NUMBERS: [(&str, &str, &str); 5] = [
        ("eps", "f64", "f32::EPSILON as f64"),
        ("nan", "f64", "0.0"),
        ("start", "i64", "0"),
        ("end", "i64", "i64::MAX"),
        ("storage_offset", "usize", "0"),
    ];
    let found = NUMBERS.iter().find(|(name, of, _)| *name == bound.name && *of == ty)?;
    (bound.value() == Some("None")).then_some(found.2)
}

/// Without a dimension torch takes all elements one behind the other, where it says so by `None`.
fn flat(bound: &Bound, ty: &str, all: &[Option<Bound>]) -> bool {
    let keeps = |b: &Bound| b.name == "keepdim" && b.given.as_deref().map(plain) == Some("true");
    bound.name == "dim" && ty == "i64" && bound.value() == Some("None") && !all.iter().flatten().any(keeps)
}

impl Ours<'_> {
    /// How a call of torch's `name` (`torch.sort`, `nn.Linear`, `Tensor.norm`) is written, where one of `targets` (`Tensor::sort`,
    /// `nn::Linear`, `cat`) takes all that it hands over.
    pub(super) fn call(&self, name: &str, of: Option<&str>, given: &Given, targets: &[String]) -> Option<String> {
        let short = name.rsplit('.').next()?;
        let as_function = [format!("torch.{short}"), format!("nn.functional.{short}")];
        let with_self = || {
            let mut given = given.clone();
            given.plain.insert(0, of?.to_owned());
            Some(given)
        };
        let mut all: Vec<(usize, String)> = Vec::new();
        let own = SIGNATURES.get(name).into_iter().flatten().map(|t| (t, of.is_some(), Some(given.clone())));
        let others = as_function.iter().filter(|_| of.is_some()).filter_map(|n| SIGNATURES.get(&**n)).flatten();
        let others = others.map(|t| (t, false, with_self()));
        for (torch, method, given) in own.chain(others) {
            let Some(mut bound) = given.and_then(|given| torch.bind(&given)) else { continue };
            if let Some(of) = of.filter(|_| method) {
                bound.insert(0, Bound { name: "self", given: Some(of.to_owned()), default: None });
            }
            for target in targets {
                all.extend(self.written(target, &bound));
            }
        }
        // What takes the least beside what is given says most plainly what is meant.
        all.into_iter().min_by_key(|(beside, _)| *beside).map(|(_, code)| code)
    }

    /// One target with what a call of torch's hands over, and how much is added to that.
    fn written(&self, target: &str, bound: &[Bound]) -> Option<(usize, String)> {
        let (owner, last) = target.rsplit_once("::").unwrap_or(("", target));
        if last.starts_with(char::is_uppercase) {
            if !self.is_made(last) && !self.parts("field", last).is_empty() {
                let mut left = bound.to_vec();
                let code = self.options(last, &mut left)?;
                return left.iter().all(|b| b.given.is_none()).then_some((0, code));
            }
            // A struct of one value is made of that.
            let tuple = !self.is_made(last);
            if let ([one], true) = (bound, tuple && self.is_type(last)) {
                return Some((0, format!("{target}({})", one.value().filter(|v| *v != "None")?)));
            }
            let new = || self.filled(&format!("{target}::new"), &self.function(last, "new")?, bound, last);
            let with = || {
                let with = self.function(last, "with")?;
                self.filled(&format!("{target}::with"), &with, bound, last)
            };
            return new().or_else(with);
        }
        let owner = owner.rsplit("::").next().filter(|o| o.starts_with(char::is_uppercase)).unwrap_or_default();
        let function = self.function(owner, last)?;
        self.filled(target, &function, bound, "")
    }

    fn filled(&self, target: &str, function: &Function, bound: &[Bound], made: &str) -> Option<(usize, String)> {
        let mut left: Vec<Bound> = bound.to_vec();
        let name = target.rsplit("::").next()?;
        let mut called = match function.of_self {
            true => {
                // Torch has it first, with few exceptions.
                let at = left.iter().position(|b| matches!(b.name, "self" | "input")).unwrap_or(0);
                let of = compared(left.remove(at).given?);
                // A list of one is that.
                let of = match of.strip_prefix('[') {
                    Some(list) if list.contains(',') => return None,
                    Some(list) => list.trim_end_matches(']').to_owned(),
                    None => of,
                };
                // A number has none of a tensor's methods.
                let of = if is_number(&of) { format!("tensor({of})") } else { receiver(&of).into_owned() };
                format!("{of}.{name}")
            }
            false => target.to_owned(),
        };
        // Nothing here has these, and nobody gives them.
        left.retain(|b| b.given.is_some() || !matches!(b.name, "last_epoch" | "dtype" | "driver" | "requires_grad"));
        // What takes no optimizer is lent one at each step.
        let of_none = !made.is_empty() && !function.takes.iter().any(|(name, _)| name == "optimizer");
        left.retain(|b| b.name != "optimizer" || !of_none);
        // By their names, and what has no such name in order.
        let mut taken: Vec<Option<Bound>> = Vec::new();
        for (ours, _) in &function.takes {
            let exact = left.iter().position(|b| b.name == ours);
            let at = exact.or_else(|| left.iter().position(|b| same(b.name, ours)));
            taken.push(at.map(|at| left.remove(at)));
        }
        for (one, (_, ty)) in taken.iter_mut().zip(&function.takes) {
            if one.is_none() && !ty.ends_with("Options") {
                let wanted = |b: &Bound| b.given.is_some() || b.default.is_none();
                *one = left.iter().position(wanted).map(|at| left.remove(at));
            }
        }
        // What ours wants that torch calls otherwise and has a default for.
        let open = |(one, (_, ty)): &(&mut Option<Bound>, &(String, String))| one.is_none() && !ty.ends_with("Options");
        let opens = taken.iter_mut().zip(&function.takes).filter(open).count();
        if opens == left.len() {
            for (one, _) in taken.iter_mut().zip(&function.takes).filter(open) {
                *one = Some(left.remove(0));
            }
        }
        let (mut arguments, mut beside) = (Vec::new(), 0);
        for (one, (of, ty)) in taken.iter().zip(&function.takes) {
            beside += usize::from(one.as_ref().is_none_or(|b| b.given.is_none()));
            let value = match one {
                Some(bound) if function.of_self && flat(bound, ty, &taken) => {
                    called.insert_str(called.rfind('.')?, ".flatten()");
                    "0".to_owned()
                }
                Some(bound) => match nothing(bound, ty) {
                    Some(value) => value.to_owned(),
                    None => self.converted(bound.value()?, ty)?,
                },
                None if ty.ends_with("Options") => self.options(ty, &mut left)?,
                None if ty.starts_with("Option<") => "None".to_owned(),
                // Of a sum over all there is.
                None if of == "dim" && ty.ends_with("Into<Dims>") => "()".to_owned(),
                None if of == "keepdim" => "false".to_owned(),
                // Torch leaves it out in front.
                None if of == "low" => "0".to_owned(),
                None => return None,
            };
            arguments.push(value);
        }
        let mut code = call_of(&called, &mut arguments);
        for rest in left.iter().filter(|b| b.given.as_deref().is_some_and(|g| !b.default.is_some_and(|d| alike(g, d))))
        {
            let value = rest.given.as_deref()?;
            let method = self.method(made, rest.name);
            match method.as_ref().and_then(|(name, f)| Some((name, f.takes.first()?))) {
                Some((name, (_, ty))) => code += &format!(".{name}({})", self.converted(value, ty)?),
                None if plain(value) == "false" && self.without(made, rest.name).is_some() => {
                    code += &format!(".{}()", self.without(made, rest.name)?);
                }
                None if self.without(made, rest.name).is_some() => {
                    let without = format!("{code}.{}()", self.without(made, rest.name)?);
                    code = format!("if {value} {{ {code} }} else {{ {without} }}");
                }
                // What makes a tensor makes float32.
                None if rest.name == "dtype" && !function.of_self && made.is_empty() => {
                    code += &format!(".to({value})")
                }
                None if rest.name == "requires_grad" => code += ".requires_grad_(true)",
                None => return None,
            }
        }
        Some((beside, code))
    }

    /// A struct of options with the fields that the call sets.
    fn options(&self, ty: &str, left: &mut Vec<Bound>) -> Option<String> {
        let mut set = Vec::new();
        for (field, of) in self.fields(ty) {
            let Some(at) = left.iter().position(|b| b.name == field && b.given.is_some()) else { continue };
            let one = left.remove(at);
            let value = one.given.as_deref()?;
            if !one.default.is_some_and(|d| alike(value, d)) {
                set.push(format!("{field}: {}", self.converted(value, of)?));
            }
        }
        let path = self.path(ty);
        Some(match set.is_empty() {
            true => format!("{path}::default()"),
            false => format!("{path} {{ {}, ..Default::default() }}", set.join(", ")),
        })
    }

    /// A value of Python's as a type of ours, where that is plain.
    pub(super) fn converted(&self, value: &str, ty: &str) -> Option<String> {
        let value = plain(value);
        let (none, text) = (value == "None", unquoted(value));
        let items = bare_list(value);
        let list = (items.starts_with('[') || value.starts_with('(') && listed(value)).then(|| inside(items));
        let number = is_number(value);
        let whole = number && is_whole(value.trim_start_matches('-'));
        let yes_or_no = matches!(value, "true" | "false");
        let bare = !none && text.is_none() && list.is_none();
        let lent = |v: &str| format!("&{}", receiver(&compared(v.trim_start_matches('&').to_owned())));
        let in_list = |prefix: &str| Some(format!("{prefix}[{}]", list?.trim_end_matches([',', ' '])));
        if let Some(inner) = ty.strip_prefix("Option<").and_then(|t| t.strip_suffix('>')) {
            return if none {
                Some("None".to_owned())
            } else {
                Some(format!("Some({})", self.converted(value, inner)?))
            };
        }
        if let Some(inner) = ty.strip_prefix("impl Into<").and_then(|t| t.strip_suffix('>')) {
            return match inner.rsplit("::").next()? {
                "Dims" if none || list.is_some_and(|l| l.is_empty()) => Some("()".to_owned()),
                "Dims" if list.is_some() => in_list(""),
                "Dims" => (bare && !yes_or_no).then(|| value.to_owned()),
                arg if arg.starts_with("Arg") => bare.then(|| if number { value.to_owned() } else { lent(value) }),
                "Scalar" => bare.then(|| value.to_owned()),
                inner if text.is_some() => self.converted(value, inner),
                _ => (!none).then(|| value.to_owned()),
            };
        }
        if ty.starts_with("impl Fn") {
            return bare.then(|| closure_that_is_given(powers(value.to_owned())));
        }
        // `*layers` is a list as it is.
        let starred = || list.unwrap_or(value).trim_end_matches([',', ' ']).strip_prefix('*').filter(|all| is_one(all));
        if let ("impl Layers" | "impl Schedulers", Some(all)) = (ty, starred()) {
            return Some(all.to_owned());
        }
        // What may be of several types is a tuple.
        if let ("impl Layers" | "impl Schedulers", Some(all)) = (ty, list) {
            let all = all.trim_end_matches([',', ' ']);
            return Some(if is_one(all) { format!("vec![{all}]") } else { format!("({all})") });
        }
        // `super::Reduction`
        let ty = if ty.starts_with(char::is_lowercase) { ty.rsplit("::").next()? } else { ty };
        match ty {
            // `mode='reduced'`, `UPLO='L'`.
            "bool" if text.is_some() => match text? {
                "L" | "reduced" => Some("false".to_owned()),
                "U" | "complete" => Some("true".to_owned()),
                _ => None,
            },
            "bool" => (bare && !number).then(|| value.to_owned()),
            "f64" | "f32" if matches!(text, Some("fro")) => Some("2.0".to_owned()),
            "f64" | "f32" => (bare && !yes_or_no && !is_dtype(value)).then(|| floats(value)),
            // Python's are numbers.
            "i64" | "usize" | "i32" | "u64" | "isize" if yes_or_no => Some(u8::from(value == "true").to_string()),
            "i64" | "usize" | "i32" | "u64" | "isize" => {
                (bare && (whole || !number) && !is_dtype(value)).then(|| value.to_owned())
            }
            "&str" => text.map(|t| format!("\"{t}\"")),
            "&Tensor" if number => Some(format!("&tensor({value})")),
            "&Tensor" => (bare && !yes_or_no).then(|| lent(value)),
            _ if ty.starts_with("&[") && (ty.contains("Tensor") || ty == "&[T]") => match list {
                Some(all) => {
                    let words = Words::of(all);
                    let each = words.between_commas(0, words.len());
                    let one = |one: String| match (ty.contains("Option<"), &*one) {
                        (true, "None") => one,
                        (true, _) => format!("Some({})", lent(&one)),
                        (false, _) => lent(&one),
                    };
                    let each = each.iter().filter_map(|r| words.part(r.start, r.end)).map(|(part, _)| one(part));
                    Some(format!("&[{}]", each.collect::<Vec<_>>().join(", ")))
                }
                None => bare.then(|| lent(value)),
            },
            _ if ty.starts_with("&[") => in_list("&").or_else(|| (bare && !number).then(|| lent(value))),
            _ if ty.starts_with("[&") => match self.converted(value, &format!("&{}", ty.replace('&', "")))? {
                lent if lent.starts_with("&[") => Some(lent[1..].to_owned()),
                _ => None,
            },
            _ if ty.starts_with('[') => in_list(""),
            // Of as many parts, each of its own type.
            _ if ty.starts_with('(') && list.is_some() => {
                let (values, types) = (Words::of(list?), Words::of(inside(ty)));
                let (values, types) = (values.listed(0..values.len())?, types.listed(0..types.len())?);
                let all = values.iter().zip(&types).map(|(value, ty)| self.converted(value, ty));
                let all = all.collect::<Option<Vec<_>>>().filter(|all| all.len() == types.len())?;
                Some(format!("({})", all.join(", ")))
            }
            _ if ty.starts_with("&mut ") => {
                bare.then(|| format!("&mut {}", value.trim_start_matches("&mut ").trim_start_matches('&')))
            }
            _ if ty.starts_with('&') => bare.then(|| lent(value)),
            _ => {
                if let Some(of) = ty.strip_prefix("Vec<").and_then(|t| t.strip_suffix('>')).filter(|of| *of != "Tensor")
                {
                    let words = Words::of(list.unwrap_or(value));
                    let each = words.between_commas(0, words.len()).into_iter();
                    let each = each.map(|r| self.converted(&words.part(r.start, r.end)?.0, of));
                    return (list.is_some() || number)
                        .then(|| Some(format!("vec![{}]", each.collect::<Option<Vec<_>>>()?.join(", "))))?;
                }
                let variants = self.parts("variant", ty);
                // What has several forms is made of the one that is given.
                let made = ty == "Dims" || self.is_type(ty) && !ty.contains('<');
                let into = |v: String| if made { format!("{v}.into()") } else { v };
                let letters = |t: &str| t.to_lowercase().replace(['_', '-'], "");
                // `bilinear` is linear in each of two dimensions.
                let each = |t: &str| t.trim_start_matches("bi").trim_start_matches("tri").to_owned();
                let begins = |t: &str| variants.iter().find(|v| letters(v).starts_with(t));
                let named = |t: &str| begins(&letters(t)).or_else(|| begins(&each(&letters(t))));
                match text {
                    _ if variants.is_empty() && list.is_some() && made => in_list("").map(into),
                    _ if variants.is_empty() && (number || list.is_some()) => Some(into(value.to_owned())),
                    _ if variants.is_empty() => (!none).then(|| value.to_owned()),
                    Some(t) => named(t).map(|v| format!("{}::{v}", self.path(ty))),
                    None if none => Some(format!("{}::default()", self.path(ty))),
                    None if number && !variants.is_empty() && !self.is_made_of_a_number(ty) => None,
                    None if number && self.is_made_of(ty, "f64") => {
                        Some(into(if whole { format!("{value}.0") } else { value.to_owned() }))
                    }
                    None if number || list.is_some() => Some(into(in_list("").unwrap_or_else(|| value.to_owned()))),
                    None => bare.then(|| value.to_owned()),
                }
            }
        }
    }
}
