//! What somebody writes who knows another library, where no row of the table for people from torch says what it is here.
use super::apart;
use super::change::Change;
use super::dataset;
use super::functions;
use super::instead::{ANSWER, IN_RUST, rewritten};
use super::named;
use super::numbers::is_number;
use super::options;
use super::ours::Ours;
use super::python;
use super::subscript;
use super::texts::Texts;
use super::words::{Words, own_name, receiver};
use crate::eval::toolchain::diagnostic::{Diagnostic, Span};
use std::ops::Range;

/// What every module has.
const OF_A_MODULE: &[&str] = &[
    "parameters",
    "named_parameters",
    "state_dict",
    "load_state_dict",
    "train",
    "eval",
    "zero_grad",
    "requires_grad_",
    "modules",
    "named_modules",
    "apply",
    "summary",
];

/// How a model is copied.
const COPIED: &str = "a model's copy is another one of its type that takes its values: \
    `other.load_state_dict(&model.state_dict())?`; tensors of both are then their own";

/// What floats have and whole numbers have not.
const FLOATS: [&str; 22] = [
    "sqrt", "cbrt", "exp", "exp2", "exp_m1", "ln", "ln_1p", "log", "log2", "log10", "sin", "cos", "tan", "asin",
    "acos", "atan", "sinh", "cosh", "tanh", "powf", "powi", "recip",
];

/// What stands for something that is taken apart otherwise, or for a dictionary.
pub(super) fn in_other_words(error: &Diagnostic, texts: &Texts, ours: &Ours) -> Option<(String, Change)> {
    let said = |begin: &str, change: Change| (format!("{begin}`{}`", change.code), change);
    let apart = apart::told(error, texts).filter(|_| matches!(&*error.code, "E0308" | "E0529"));
    apart.map(|change| said(ANSWER, change)).or_else(|| {
        let (text, groups) = named::told(error, texts, ours)?;
        let note = groups.note();
        let (said, change) = said(IN_RUST, Change::new(text, groups.at, groups.code));
        Some((said + &note, change))
    })
}

/// The line of the user's where an error is.
pub(super) fn line_of<'t>(error: &Diagnostic, texts: &'t Texts) -> Option<&'t str> {
    let (text, at) = error.spans.iter().find(|s| s.primary).and_then(|s| texts.map(s))?;
    let start = text.text[..at.start].rfind('\n').map_or(0, |i| i + 1);
    text.text[start..].lines().next()
}

/// What somebody writes who knows PyTorch, or another library for it, where no row of the table says what it is here.
pub(super) fn of_another_library(
    error: &Diagnostic,
    texts: &Texts,
    quoted: &[&str],
    is_ours: &dyn Fn(&str) -> bool,
    ours: &Ours,
) -> Option<String> {
    let (text, at) = error.spans.iter().find(|s| s.primary).and_then(|s| texts.map(s))?;
    let line = line_of(error, texts).unwrap_or_default().trim_start();
    let help = match (&*error.code, quoted) {
        ("E0050" | "E0053", ["forward", ..]) => {
            "a module's `forward` takes and gives one tensor: what takes or gives more is a method of the type's own, in an `impl` without `Module`"
                .to_owned()
        }
        ("E0425" | "E0432" | "E0433", [name, ..])
            if DISTRIBUTIONS.contains(name) || *name == "torch" && line.contains("distributions") =>
        {
            "drawing is a method of the parameters: `p.multinomial(1, true)` and `p.bernoulli()` of probabilities, with \
             `p.log().gather(-1, &drawn)` as their logarithm, `rate.poisson()`, `Tensor::normal(&mean, &std, mean.shape())`"
                .to_owned()
        }
        ("E0425" | "E0432" | "E0433" | "E0423", ["torch" | "tch", ..]) => {
            "there is no module `torch`: what are functions there are methods of tensors (`x.exp()`) and functions without a module \
             (`cat`, `where_`); `nn`, `optim` and `data` are modules. `?NAME` tells of a name"
                .to_owned()
        }
        ("E0599", [method, ty, ..]) if IDLE.contains(method) && (is_layer(ty, ours) || ty.ends_with("xlazy::Tensor")) => {
            format!("leave `.{method}()` out: there is nothing to do here")
        }
        ("E0599", [method, ty, ..]) if ty.contains("DataLoader") && let Some(help) = options::in_words(method) => {
            help.to_owned()
        }
        ("E0609", [field, ty, ..]) if is_layer(ty, ours) && is_weight(field) => {
            let of = field_of(&text.text, &at)?;
            format!(
                "weights have their names in torch's way: `{of}.named_parameters()` has them all, and this one is \
                 `{of}.named_parameters().into_iter().find(|(name, _)| name == \"{field}\").unwrap().1`"
            )
        }
        ("E0618", _)
            if let Some(help) = functions::told(text.text.get(at.clone())?, &text.text, at.start, &|value| rewritten(value, ours)) =>
        {
            help
        }
        ("E0425" | "E0433", ["np", ..]) => "tensors are made of vectors and arrays by `tensor(v)`".to_owned(),
        ("E0425" | "E0433", ["plt", ..]) => {
            "`Plot::new(\"title\").x_label(\"step\").line(\"name\", &v)` is a plot, which a cell shows that ends with it; `grid(&[a, b], 2)` \
             are two side by side"
                .to_owned()
        }
        ("", _) if error.message.starts_with("prefix `f` is unknown") => {
            "a text with values in it is `format!(\"{name}\")`, and `println!` prints one; an expression stands behind it: \
             `println!(\"{:.3}\", x.item())`"
                .to_owned()
        }
        ("", _) if line.starts_with("import ") || line.starts_with("from ") && line.contains(" import ") => {
            const OF_ITS_OWN: [&str; 5] = ["torch", "torchvision", "numpy", "matplotlib", "math"];
            let module = line.split([' ', '.', ',']).nth(1).unwrap_or_default();
            match OF_ITS_OWN.contains(&module) {
                true => "leave it out: every cell has all of xlazy already, `?NAME` tells of a name".to_owned(),
                false => format!(
                    "that is Python: `use std::…;` brings names of Rust's own library, and `:dep NAME` a crate; there is no `{module}`"
                ),
            }
        }
        ("", _) if line.starts_with("class ") && line.split('#').next().is_some_and(|head| head.contains("Dataset")) => {
            dataset::in_words(first_name(&line[6..]))
        }
        ("", _) if line.starts_with("class ") => {
            let name = first_name(&line[6..]);
            format!(
                "a model is a struct of its layers, `struct {name} {{ part: nn::Linear }}`, with what it computes, \
                 `impl Module for {name} {{ parts!(part); fn forward(&self, x: &Tensor) -> Tensor {{ self.part.forward(x) }} }}`"
            )
        }
        ("", ["Module"]) if error.message.starts_with("cannot find derive macro") => {
            let name = text.text[at.end..].split_once("struct ").map_or("Net", |(_, rest)| rest);
            let name = first_name(name);
            format!(
                "write `impl Module for {name} {{ parts!(…); fn forward(&self, x: &Tensor) -> Tensor {{ … }} }}`, with the names \
                 of its layers in the brackets"
            )
        }
        ("", _)
            if error.message.starts_with("negative integers cannot be used to index")
                && let Some(code) = subscript::from_the_end(&Words::of(&text.text), &at) =>
        {
            format!("{IN_RUST}`{code}`")
        }
        ("E0425", ["copy"]) if line.contains("copy.deepcopy(") || line.contains("copy.copy(") => COPIED.to_owned(),
        ("E0277", _) if error.message.contains("xlazy::nn::") && error.message.ends_with(": Clone` is not satisfied") => {
            format!("layers have no `Clone`: {COPIED}")
        }
        ("E0425", ["heat_map" | "heatmap", ..]) if let Some(code) = python::heat_map(&text.text, at.start) => {
            format!("{ANSWER}`{code}`")
        }
        ("E0609" | "E0616", ["training", ty, ..]) if ty.contains("xlazy::nn::") || is_ours(ty) => {
            "`.train(true)` and `.eval()` say whether a module trains, which nobody asks it; one of your own that is to know has a field \
             `training: nn::Training`, shown by `p.training(&self.training)` in its `fn parts(&self, p: &mut nn::Parts)`: `self.training.on()`"
                .to_owned()
        }
        ("E0599", [method, ty, ..])
            if let Some((kind, f)) = hook_of(method)
                && (is_layer(ty, ours) || error.text().contains("xlazy::nn::") || is_ours(ty)) =>
        {
            let of = field_of(&text.text, &at)?;
            let name = first_name(of.rsplit('.').next().unwrap_or(&of));
            let made = match of == name {
                true => format!("`let {name} = nn::Hooked::new({name});`"),
                false => format!("`{name}: nn::Hooked::new(…)` in place of the layer"),
            };
            format!(
                "a module that calls hooks is an `nn::Hooked`: {made}, and `{of}.{kind}({f} None)`, where `Some(tensor)` takes the place of \
                 what there is; it gives what `.remove()` takes away again"
            )
        }
        ("E0599", ["clone", ty, ..]) if is_layer(ty, ours) || error.text().contains("xlazy::nn::") => COPIED.to_owned(),
        ("E0599", ["add" | "append" | "add_module" | "add_layer", "Sequential" | "ModuleList", ..]) => {
            "`.push(layer)` adds one, to a `let mut` variable; `nn::Sequential::new((a, b))` has several at once".to_owned()
        }
        ("E0599", ["children" | "modules" | "named_children", ..]) => {
            "`.named_modules()` has the names and kinds of all modules inside, `.parameters()` what is trained; `.apply(&mut |m| …)` does something \
             to each of them, and one in a field is that field"
                .to_owned()
        }
        ("E0277", _) if error.message.contains("Numbers: From<&Vec<(f") => {
            "pairs are two lists here: `let (x, y): (Vec<f64>, Vec<f64>) = v.iter().copied().unzip();`, and `Plot::new(\"\").curve(\"\", &x, &y)`"
                .to_owned()
        }
        ("E0423" | "E0425" | "", [name, ..])
            if let Some(help) = functions::told(name, &text.text, at.start, &|value| rewritten(value, ours)) =>
        {
            help
        }
        ("E0599", ["format", ..]) | ("E0369", _) if let Some(help) = python::old_format(&text.text, at.start) => help,
        ("E0599", [name, ty, ..]) if let Some(help) = functions::method(name, ty, &given_to(&text.text, &at)) => help,
        ("E0369", [of, to, ..]) if is_list(of) || is_list(to) => {
            match error.message.starts_with("cannot add") && is_list(of) && is_list(to) {
                true => format!("{IN_RUST}`[&v[..], &w[..]].concat()` joins two lists; `tensor(v)` computes with their numbers"),
                false => "a list has no arithmetic: `tensor(v)` is a tensor of its numbers, `v.iter().map(|x| …)` goes through them".to_owned(),
            }
        }
        ("E0608", [of, ..]) if of.starts_with("std::str::") || of.starts_with("std::iter::") => {
            "an iterator has no places: `.collect::<Vec<_>>()` behind it makes a list, `.nth(…)` gives one of what comes".to_owned()
        }
        ("E0605", ["xlazy::Tensor" | "&xlazy::Tensor", ty]) => {
            as_number(text.text.get(at)?.rsplit_once(" as ")?.0, ty)
        }
        ("E0614", _) if let Some(help) = python::power(&text.text, at.start) => help,
        ("E0609", [field, of, ..]) if of.contains("dyn ") && of.contains("Module") => format!(
            "what is known as a module and nothing else has no fields: `for (name, p) in {}.named_parameters()` goes through what it \
             has, with `name == \"{field}\"` for this; a layer in a field or a variable of its own has all that its type has",
            field_of(&text.text, &at).unwrap_or("m".to_owned())
        ),
        ("E0277", [_, display, ..]) if *display == "std::fmt::Display" && !of_std(quoted[0]) => {
            "`display(&x)` shows anything that has a picture, a tree or `Debug`, and so does `x` at the end of a cell".to_owned()
        }
        ("E0308", _) if let Some(help) = item_as(error, &text.text[at.clone()]) => help,
        ("E0308", _) if let Some(help) = number_or_tensor(error, &text.text[at.clone()]) => help,
        ("E0282", _) if error.text().contains("consider giving this closure parameter an explicit type") => {
            format!("`|{0}: &Tensor|` says that `{0}` is a tensor, and `|{0}: f64|` that it is a number", text.text.get(at)?)
        }
        ("E0689", [method, "{integer}"]) => {
            let number = text.text[..at.start].trim_end().trim_end_matches('.');
            let digits = number.len() - number.trim_end_matches(|c: char| c.is_ascii_digit()).len();
            let number = Some(&number[number.len() - digits..]).filter(|n| !n.is_empty()).unwrap_or("4");
            let (point, ty) = if FLOATS.contains(method) { (".0", "f64") } else { ("", "i64") };
            format!("say of what type the number is: `{number}{point}_{ty}.{method}(…)`")
        }
        // What rustc would leave out is what torch takes there.
        ("E0061", _) if is_about_ours(error) && error.text().contains("remove the extra argument") => {
            let called = text.text.get(at.clone())?;
            let method = text.text[..at.start].trim_end().ends_with('.');
            let what = if method { of_receiver(&text.text, &at)? } else { called.to_owned() };
            let options = if called.ends_with("::new") { "; an option is a method behind it, or in what `::with` takes" } else { "" };
            format!("`?{what}` tells what it takes{options}")
        }
        ("E0529" | "E0308" | "E0599", _) if takes_a_shape_apart(error, quoted) && !line.starts_with("let [") => {
            "`x.dims()` takes a shape apart, as an array: `let [n, d] = x.dims();`".to_owned()
        }
        ("E0277" | "E0308" | "E0369" | "E0599" | "E0614", _) if holds_an_option(error) => {
            "it is an `Option`, since there may be none (of a gradient: before `backward()`): `.unwrap()` behind it is the tensor".to_owned()
        }
        ("E0308" | "E0599", _) if is_a_batch(error) => "a batch is an array: `for [x] in &loader`".to_owned(),
        ("E0529", _) if error.message.contains("found `Vec<xlazy::Tensor>`") && !line.starts_with("let [") => {
            "as many as there are is known when it runs: `let [a, b]: [Tensor; 2] = ….try_into().unwrap();`".to_owned()
        }
        ("E0425" | "E0432" | "E0433" | "E0423", ["datasets", ..]) => {
            "`data::ImageFolder` reads pictures, `data::read_csv` tables, and `data::FakeData` makes up what has the sizes of a data set"
                .to_owned()
        }
        ("E0425" | "E0432" | "E0433" | "E0423", ["torchvision" | "transforms", ..]) => {
            "`image(&x)` and `images(&x)` show pictures; `data::ImageFolder` reads them, and \
             `.transform(|p| p.resize(32).to_tensor())` has torchvision's transforms"
                .to_owned()
        }
        ("E0425" | "E0432" | "E0433" | "E0423", ["math", ..]) => {
            "numbers have it as methods, `x.sqrt()`, `x.powi(2)`, and `std::f64::consts::PI`".to_owned()
        }
        ("E0599", [method, "(Vec<f32>, usize, usize)", ..]) if *method != "0" => {
            "`data::read_csv` gives numbers, rows and columns: `let (v, rows, columns) = data::read_csv(…)?;`, and \
             `Tensor::from_vec(v, [rows, columns])` is the tensor"
                .to_owned()
        }
        ("E0599" | "E0616", [.., of]) | ("E0599" | "E0616", [.., of, _])
            if of.trim_start_matches('&').contains("DataLoader") && quoted.contains(&"dataset") =>
        {
            "`loader.samples()` counts the samples of a loader, `loader.len()` its batches".to_owned()
        }
        ("E0599", _) if error.message.contains("DataLoader<") && error.message.ends_with("is not an iterator") => {
            "batches come by `for [x, y] in &loader`, or of `loader.iter()`, as in `loader.iter().enumerate()`".to_owned()
        }
        ("E0618", [found]) if is_ours(found.trim_start_matches('&')) => {
            format!("a struct is not called: `{}.forward(…)`, or another method that it has", text.text.get(at)?)
        }
        ("E0599", ["legend", plot, ..]) if plot.ends_with("Plot") => {
            "leave `.legend()` out: lines that have names are named in the plot".to_owned()
        }
        ("E0599", [method, ty, ..]) if OF_A_MODULE.contains(method) && is_ours(ty) => format!(
            "`{ty}` is no module yet: `impl Module for {ty} {{ parts!(…); }}`, with the names of its layers in the brackets, gives it \
             `{method}`; a `forward` of its own may take and give anything"
        ),
        ("E0283", _) if let Some(method @ ("sum" | "product")) = untyped_method(error) => {
            format!("say of what type it is: `.{method}::<usize>()` of sizes, `.{method}::<f64>()` of numbers")
        }
        ("", _) if returns_several(&text.text[..at.end]) => "several values are a tuple: `return (a, b);`".to_owned(),
        ("E0277", _) if of_an_iterator(&error.message) => {
            "say what is collected: `.collect::<Vec<_>>()`".to_owned()
        }
        ("E0308" | "E0277", _) if wants_a_list(error) => {
            "an iterator is no list: `.collect::<Vec<_>>()` behind it makes one".to_owned()
        }
        ("E0425", ["device", ..]) => {
            "a device is a text, `x.to(\"cpu:1\")`; tensors are on the first one already".to_owned()
        }
        _ => return None,
    };
    Some(help)
}

/// What torch has methods for that say where or how something is kept.
const IDLE: [&str; 4] = ["flatten_parameters", "share_memory", "share_memory_", "pin_memory"];

/// Whether it is how torch names a weight of a recurrent layer: `weight_ih_l0`.
fn is_weight(name: &str) -> bool {
    let kind = ["weight_ih_l", "weight_hh_l", "weight_hr_l", "bias_ih_l", "bias_hh_l"].iter();
    kind.filter_map(|kind| name.strip_prefix(kind)).any(|layer| layer.starts_with(|c: char| c.is_ascii_digit()))
}

/// Whether a type is one of the library's modules, which rustc names with its path or without.
fn is_layer(ty: &str, ours: &Ours) -> bool {
    let path = || own_name(ty.trim_start_matches('&')).and_then(|name| ours.path_of(name));
    ty.contains("xlazy::nn::") || path().is_some_and(|path| path.starts_with("nn::"))
}

/// What a module's hook is registered with here, and how its closure begins.
fn hook_of(method: &str) -> Option<(&'static str, &'static str)> {
    Some(match method {
        "register_forward_hook" => ("register_forward_hook", "|_, x, y|"),
        "register_forward_pre_hook" => ("register_forward_pre_hook", "|_, x|"),
        "register_full_backward_hook" | "register_backward_hook" => ("register_full_backward_hook", "|dx, dy|"),
        _ => return None,
    })
}

/// The method of which rustc cannot tell what it gives.
fn untyped_method(error: &Diagnostic) -> Option<&str> {
    let label = error.spans.iter().find(|s| s.primary)?.label.as_deref()?;
    label.split_once("declared on the method `")?.1.split('`').next()
}

/// Whether a text ends with the comma behind the first of several values that Python gives back.
fn returns_several(text: &str) -> bool {
    let given = text.strip_suffix(',').and_then(|text| text.rsplit_once("return "));
    given.is_some_and(|(_, value)| !value.contains([';', '{', '}', '\n']))
}

/// What a type of ours has in place of a variant that it has not, or of a method that is a field of it.
pub(super) fn of_our_types(error: &Diagnostic, quoted: &[&str], ours: &Ours) -> Option<String> {
    let [name, ty, ..] = quoted else { return None };
    let ty = own_name(ty)?;
    let a_field = |s: &Span| s.primary && s.label.as_deref() == Some("field, not a method");
    if error.code != "E0599" {
        None
    } else if error.message.starts_with("no variant") {
        let variants: Vec<String> = ours.parts("variant", ty).iter().map(|v| format!("`{v}`")).collect();
        (!variants.is_empty()).then(|| format!("`{ty}` has {}: `?{ty}` tells of them", variants.join(", ")))
    } else if error.spans.iter().any(a_field) && ours.is_type(ty) {
        Some(format!(
            "`{name}` is a field: `let mut it = …; it.{name} = …;`, or what `::with` takes; `?{ty}` tells of both"
        ))
    } else {
        None
    }
}

/// The crate that an error misses.
pub(super) fn missing_crate(error: &Diagnostic) -> Option<&str> {
    const WORDS: [&str; 3] = ["unlinked crate `", "no external crate `", "can't find crate for `"];
    let said = error.spans.iter().filter_map(|s| s.label.as_deref()).chain([error.message.as_str()]);
    let after = |text: &'_ str| WORDS.iter().find_map(|w| Some(text.find(w)? + w.len()));
    let name = said.filter_map(|text| text[after(text)?..].split('`').next()).next()?;
    // The standard library's are there, and a capital is a type's.
    (!matches!(name, "std" | "core" | "alloc" | "test") && !name.starts_with(char::is_uppercase)).then_some(name)
}

/// What makes a number of a tensor, or a tensor of a number.
fn number_or_tensor(error: &Diagnostic, given: &str) -> Option<String> {
    let label = error.spans.iter().find(|s| s.primary)?.label.as_deref()?.strip_prefix("expected ")?;
    let (wanted, found) = label.split_once(", found ").map(|(a, b)| (a.trim_matches('`'), b.trim_matches('`')))?;
    let (tensor, lent) = ("Tensor", "&Tensor");
    let is_number = |ty: &str| is_number(ty) || matches!(ty, "floating-point number" | "integer");
    if wanted == "bool" && [tensor, lent, "f64"].contains(&found) {
        return as_bool(given, found != "f64");
    }
    if is_number(wanted) && [tensor, lent].contains(&found) {
        return Some(as_number(given, wanted));
    }
    let lends = if wanted == lent { "&" } else { "" };
    // A list of numbers, or of such lists.
    let inner = found.trim_start_matches(['&', '[']).replace("Vec<", "");
    let inner = inner.split(['>', ']', ';']).next().unwrap_or_default();
    if [tensor, lent].contains(&wanted) && is_list(found) && is_number(inner.trim_start_matches('[')) {
        return Some(format!("{ANSWER}`{lends}tensor({given})`"));
    }
    ([tensor, lent].contains(&wanted) && is_number(found)).then(|| format!("{ANSWER}`{lends}tensor({given})`"))
}

/// A number of a tensor's as the type that is wanted of it: `let n: i64 = x.item();`.
fn item_as(error: &Diagnostic, given: &str) -> Option<String> {
    let label = error.spans.iter().find(|s| s.primary)?.label.as_deref()?.strip_prefix("expected `")?;
    let (wanted, found) = label.split_once("`, found `").map(|(a, b)| (a, b.trim_end_matches('`')))?;
    let of = given.strip_suffix(".item()").filter(|_| found == "f64" && wanted != "f64" && is_number(wanted))?;
    Some(match wanted {
        "f32" => format!("{ANSWER}`{given} as f32`"),
        "i64" => format!("{ANSWER}`{of}.item_i64()`"),
        whole => format!("{ANSWER}`{of}.item_i64() as {whole}`"),
    })
}

/// A tensor of one number as that number.
fn as_number(given: &str, ty: &str) -> String {
    let cast = if ty == "f64" { String::new() } else { format!(" as {ty}") };
    format!("{ANSWER}`{}.item(){cast}` (of a tensor of one number, whose value it waits for)", receiver(given))
}

/// A tensor of one bool, or its number, as a condition; `assert!` is told of as a whole.
fn as_bool(given: &str, is_tensor: bool) -> Option<String> {
    let of_macro = ["assert!(", "debug_assert!("].iter().find_map(|begin| given.strip_prefix(begin));
    let all = of_macro.map_or(given, |all| all.trim_end_matches(';').strip_suffix(')').unwrap_or(all));
    let condition = first_argument(all)?;
    let (of, sign) = match syn::parse_str::<syn::Expr>(condition).ok()? {
        syn::Expr::Unary(not) if matches!(not.op, syn::UnOp::Not(_)) => {
            (&condition[syn::spanned::Spanned::span(&not.expr).byte_range()], "==")
        }
        _ => (condition, "!="),
    };
    let (item, note) = match is_tensor {
        true => (
            ".item()",
            " (of a tensor of one bool, whose value it waits for; of several, `.any()` or `.all()` says one)",
        ),
        false => ("", ""),
    };
    let code = format!("{}{item} {sign} 0.0", receiver(of));
    let code = if of_macro.is_some() { given.trim_end_matches(';').replacen(condition, &code, 1) } else { code };
    Some(format!("{ANSWER}`{code}`{note}"))
}

fn first_argument(all: &str) -> Option<&str> {
    let arguments = syn::punctuated::Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated;
    let first = syn::parse::Parser::parse_str(arguments, all).ok()?.into_iter().next()?;
    all.get(syn::spanned::Spanned::span(&first).byte_range())
}

fn is_list(ty: &str) -> bool {
    let ty = ty.trim_start_matches('&');
    ty.starts_with("Vec<") || ty.starts_with('[')
}

/// Whether it is one of Rust's own types, of which rustc says what is to be done.
fn of_std(ty: &str) -> bool {
    ["std::", "core::", "alloc::", "&", "[", "(", "Vec<", "Option<", "Result<", "HashMap<", "{"]
        .iter()
        .any(|s| ty.starts_with(s))
}

/// The name that a text begins with.
fn first_name(text: &str) -> &str {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default()
}

/// `x.name`, where that is called.
fn of_receiver(text: &str, at: &Range<usize>) -> Option<String> {
    let words = Words::of(text);
    let name = words.at(at.start)?;
    let (receiver, _) = words.part(words.operand_before(name - 1)?, name - 1)?;
    Some(format!("{}.{}", receiver, &text[at.clone()]))
}

/// What the call is given of what stands there.
fn given_to(text: &str, at: &Range<usize>) -> Vec<String> {
    let words = Words::of(text);
    let arguments = words.at(at.start).and_then(|name| words.arguments(name));
    arguments.and_then(|all| words.listed(all)).unwrap_or_default()
}

/// What a field is of.
fn field_of(text: &str, at: &Range<usize>) -> Option<String> {
    let words = Words::of(text);
    let dot = words.at(at.start)?.checked_sub(1)?;
    Some(words.part(words.operand_before(dot)?, dot)?.0)
}

/// Whether rustc says that something of the runtime's own is called.
fn is_about_ours(error: &Diagnostic) -> bool {
    let ours = |s: &Span| ["runtime/src/", "runtime/core/src/"].iter().any(|part| s.file.contains(part));
    error.children.iter().any(|c| c.spans.iter().any(ours))
}

/// Whether a list is to be made without saying of what kind: `&….collect()`.
fn of_an_iterator(message: &str) -> bool {
    message.starts_with("a value of type `[") && message.contains("cannot be built from an iterator")
        || message.starts_with("the size for values of type `[") && message.contains("cannot be known")
}

pub(super) fn wants_an_optimizer(error: &Diagnostic) -> bool {
    let label = |l: &String| l.contains("of type `&mut dyn xlazy::optim::Optimizer` is missing");
    error.spans.iter().any(|s| s.label.as_ref().is_some_and(label))
}

/// Torch's module of distributions, and those that are drawn from most.
const DISTRIBUTIONS: [&str; 5] = ["distributions", "Categorical", "Bernoulli", "Normal", "Poisson"];

/// Whether a shape is taken apart by a pattern, or asked for what a tensor has.
fn takes_a_shape_apart(error: &Diagnostic, quoted: &[&str]) -> bool {
    match &*error.code {
        "E0529" => error.message.ends_with("found `xlazy::Shape`"),
        "E0599" => matches!(quoted, ["dims", "xlazy::Shape", ..]),
        _ => {
            let said = error.text();
            said.contains("expected struct `xlazy::Shape`") && said.contains("found reference `&_`")
        }
    }
}

/// Whether a batch of one tensor stands where that tensor is wanted.
fn is_a_batch(error: &Diagnostic) -> bool {
    const BATCH: &str = "array `[xlazy::Tensor; 1]`";
    error.message.contains(BATCH)
        || error.code == "E0308"
            && error.text().contains(BATCH)
            && error.text().contains("expected struct `xlazy::Tensor`")
}

/// Whether there may be no tensor where one is wanted.
fn holds_an_option(error: &Diagnostic) -> bool {
    const OPTION: &str = "Option<xlazy::Tensor>`";
    match &*error.code {
        "E0308" => {
            let said = error.text();
            let wanted = ["expected struct `xlazy::Tensor`", "expected reference `&xlazy::Tensor`"];
            said.contains(OPTION) && wanted.iter().any(|wanted| said.contains(wanted))
        }
        "E0599" => {
            error.message.starts_with("no method named") && error.text().contains(&format!("not found in `{OPTION}"))
        }
        _ => error.message.contains(OPTION),
    }
}

/// Whether an iterator is handed over where a list is wanted.
pub(super) fn wants_a_list(error: &Diagnostic) -> bool {
    const ADAPTERS: [&str; 10] =
        ["Map<", "Filter<", "FilterMap<", "FlatMap<", "Enumerate<", "Zip<", "Rev<", "Take<", "Skip<", "Chain<"];
    let adapter = |found: &str| ADAPTERS.iter().any(|a| found.starts_with(a));
    if let Some(bound) = error.message.strip_prefix("the trait bound `") {
        // `Numbers: From<Map<…>>`, and `Map<…>: Layers`.
        let made_of = bound.split_once(": From<").map(|(_, of)| of);
        let of = made_of.or_else(|| bound.contains(": Layers` is not").then_some(bound));
        return of.is_some_and(|of| adapter(of.trim_start_matches("std::iter::")));
    }
    let label = error.spans.iter().find(|s| s.primary).and_then(|s| s.label.as_deref()).unwrap_or_default();
    let Some((wanted, found)) = label.split_once(", found ") else { return false };
    let wanted = wanted.trim_start_matches("expected ").trim_matches('`').trim_start_matches('&');
    let found = found.trim_matches('`').trim_start_matches('&').trim_start_matches("std::iter::");
    (wanted.starts_with('[') || wanted.starts_with("Vec<")) && adapter(found)
}
