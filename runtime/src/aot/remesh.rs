//! What-ifs over other meshes: the same program, its axes of other sizes.
use super::program;
use crate::{Error, Result};
use std::ops::Range;

/// Names and sizes.
type Axes = Vec<(String, u64)>;

fn refused(message: String) -> Error {
    Error::Usage { message }
}

/// How many devices a program's text is for: its copies, and the parts of each.
pub(super) fn devices(text: &str) -> (u64, u64) {
    let head = text.split_once("func.func").map_or(text, |(head, _)| head);
    let number = |name: &str| {
        let (_, rest) = head.split_once(&format!("mhlo.num_{name} = "))?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    (number("replicas").unwrap_or(1), number("partitions").unwrap_or(1))
}

/// The axes of `sdy.mesh @mesh = <["data"=4, "model"=2]>`, and where in the text they stand.
fn mesh(text: &str) -> Option<(Range<usize>, Axes)> {
    let from = text.find("sdy.mesh @mesh = <[")? + "sdy.mesh @mesh = <[".len();
    let to = from + text[from..].find(']')?;
    let axis = |part: &str| {
        let (name, size) = part.trim().strip_prefix('"')?.split_once("\"=")?;
        Some((name.to_owned(), size.parse().ok()?))
    };
    Some((from..to, text[from..to].split(',').map(axis).collect::<Option<_>>()?))
}

/// `data=16,model=16`
pub(super) fn axes(text: &str) -> Result<Axes> {
    let one = |part: &str| {
        let (name, size) = part.trim().split_once('=')?;
        Some((name.trim().to_owned(), size.trim().parse().ok().filter(|n| *n > 0)?))
    };
    let all: Option<Vec<_>> = text.split(',').map(one).collect();
    all.ok_or_else(|| refused(format!("{text:?} is no mesh: write axes and their sizes, as `with data=16,model=16`")))
}

/// The program over a mesh whose axes have these sizes; those that are not named keep theirs.
///
/// Errors: it is for no mesh, or has code for each device of it; no such axis; a dimension that does not split evenly.
pub(super) fn over(text: &str, wanted: &[(String, u64)]) -> Result<String> {
    let Some((range, mut axes)) = mesh(text) else {
        let replicas = text.split_once("mhlo.num_replicas = ").map(|(_, rest)| rest);
        let why = match replicas.is_some_and(|n| !n.starts_with("1 ")) {
            true => {
                "the program is one of ranks (`spawn`), which are as many as there are: what is split over a mesh with \
                     `mark_sharding` can be asked about for others"
            }
            false => {
                "the program is for one device, so there is no mesh to change: lay its inputs out with `mark_sharding`, on the \
                      CPU's devices (`%device CPU 8` before the first tensor), and ask again"
            }
        };
        return Err(refused(why.into()));
    };
    let names = axes.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(" and ");
    for (name, size) in wanted {
        match axes.iter_mut().find(|(n, _)| n == name) {
            Some(axis) => axis.1 = *size,
            None => return Err(refused(format!("the program's mesh has no axis `{name}`: it has {names}"))),
        }
    }
    if text.contains("sdy.manual_computation") {
        let why = "the program has code for each device (`spmd::manual`), whose shapes are those of its mesh: it is compiled for \
                   that mesh alone";
        return Err(refused(why.into()));
    }
    even(text, &axes)?;
    let said: Vec<String> = axes.iter().map(|(name, size)| format!("{name:?}={size}")).collect();
    let mut out = String::with_capacity(text.len());
    out.push_str(&text[..range.start]);
    out.push_str(&said.join(", "));
    out.push_str(&text[range.end..]);
    let (_, old) = devices(text);
    let new: u64 = axes.iter().map(|(_, size)| size).product();
    Ok(out.replacen(&format!("mhlo.num_partitions = {old}"), &format!("mhlo.num_partitions = {new}"), 1))
}

/// In how many parts the first dimension of an argument of `main` is split, over a mesh whose axes have these sizes.
pub(super) fn parts(text: &str, argument: usize, wanted: &[(String, u64)]) -> u64 {
    const MARK: &str = "<@mesh, [";
    let Some((_, mut axes)) = mesh(text) else { return 1 };
    for (name, size) in wanted {
        axes.iter_mut().filter(|(n, _)| n == name).for_each(|axis| axis.1 = *size);
    }
    let head = text.find("@main(").map_or("", |at| text[at..].lines().next().unwrap_or_default());
    let head = head.split(") -> ").next().unwrap_or_default();
    let Some(own) = head.split('%').nth(argument + 1) else { return 1 };
    let Some(at) = own.find(MARK) else { return 1 };
    let first = dims(&own[at + MARK.len()..]).into_iter().next().unwrap_or_default();
    first.iter().map(|part| part_size(part, &axes)).product::<u64>().max(1)
}

/// Refuses a dimension that does not split evenly: Shardy would take a part of the axis, and say nothing.
fn even(text: &str, axes: &[(String, u64)]) -> Result<()> {
    const MARK: &str = "<@mesh, [";
    for (at, _) in text.match_indices(MARK) {
        let line = text[..at].rfind('\n').map_or(0, |n| n + 1);
        let end = at + text[at..].find(']').unwrap_or(0);
        let ty = match text[line..at].contains("sharding_constraint") {
            true => text[end..].find("tensor<").map(|n| end + n),
            false => text[line..at].rfind("tensor<").map(|n| line + n),
        };
        let Some(ty) = ty.and_then(|ty| text[ty + "tensor<".len()..].split('>').next()) else { continue };
        let sizes: Vec<u64> = ty.split('x').map_while(|d| d.parse().ok()).collect();
        for (d, dim) in dims(&text[at + MARK.len()..]).into_iter().enumerate() {
            let parts: u64 = dim.iter().map(|part| part_size(part, axes)).product();
            if let Some(&size) = sizes.get(d)
                && parts > 0
                && size % parts != 0
            {
                return Err(refused(format!(
                    "dimension {d} of tensor<{ty}> is of size {size}, which does not split evenly in {parts} parts: make it a \
                     multiple, such as {}",
                    size.div_ceil(parts) * parts
                )));
            }
        }
    }
    Ok(())
}

/// The braces of `{"data", "model"}, {}]…`, as the axes that each holds.
fn dims(text: &str) -> Vec<Vec<&str>> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.strip_prefix('{') {
        let Some((inside, after)) = open.split_once('}') else { break };
        out.push(inside.split(", ").filter(|p| !p.is_empty()).collect());
        rest = after.strip_prefix(", ").unwrap_or(after);
    }
    out
}

/// `"data"`, or of a part of an axis `"data":(1)2`.
fn part_size(part: &str, axes: &[(String, u64)]) -> u64 {
    match part.split_once(')') {
        Some((_, size)) => size.parse().unwrap_or(1),
        None => axes.iter().find(|(name, _)| part.trim_matches('"') == name).map_or(1, |(_, size)| *size),
    }
}

/// The same for a program's bytes; what is no text is refused.
pub(super) fn bytes_over(bytes: &[u8], wanted: &[(String, u64)]) -> Result<Vec<u8>> {
    let text = program::text(bytes).ok_or_else(|| refused("a program as bytecode has a mesh of its own".into()))?;
    over(text, wanted).map(String::into_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"module @xlazy attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["data"=4, "model"=2]>
  func.func public @main(%0: tensor<64x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> (tensor<64x6xf32>) {
    %1 = sdy.sharding_constraint %0 <@mesh, [{"data", "model"}, {}]> : tensor<64x6xf32>
    return %1 : tensor<64x6xf32>
"#;

    #[test]
    fn a_mesh_takes_other_sizes() {
        assert_eq!(devices(TEXT), (1, 8));
        assert_eq!(devices("module @xlazy {\n"), (1, 1));
        let new = over(TEXT, &axes("data=16, model=4").unwrap()).unwrap();
        assert!(new.contains(r#"<["data"=16, "model"=4]>"#), "{new}");
        assert_eq!(devices(&new), (1, 64));
        let said = |with: &str| over(TEXT, &axes(with).unwrap()).unwrap_err().to_string();
        assert!(said("data=128").contains("dimension 0 of tensor<64x6xf32> is of size 64"), "{}", said("data=128"));
        assert!(said("model=32").contains("in 128 parts"), "{}", said("model=32"));
        assert!(said("batch=2").contains("no axis `batch`: it has `data` and `model`"));
        assert!(axes("data").is_err() && axes("data=0").is_err() && axes("").is_err());
        assert!(over("module @xlazy {}", &[]).unwrap_err().to_string().contains("for one device"));
    }
}
