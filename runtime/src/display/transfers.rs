//! The collectives of a program as a compiler gives it: what devices tell one another, how much, in which groups, and by which
//! algorithm.
use super::hlo::{element_type, shape_text};
use crate::json::Value;
use std::collections::HashSet;
use xlazy_core::proto::Message;

/// One collective of an optimised program.
pub(crate) struct Transfer {
    /// Its name in the program.
    pub name: String,
    /// `all-reduce`
    pub kind: String,
    /// What it gives each device, as XLA writes it.
    pub shape: String,
    /// Of that.
    pub bytes: u64,
    /// As XLA writes them.
    pub groups: String,
    /// How many devices are in one of them; 0 where that is all of them, or not told.
    pub size: u64,
    /// As the compiler has chosen it, where it tells.
    pub algorithm: String,
    /// It runs beside other work of the program.
    pub is_async: bool,
    /// The name of the op of the user's that it is for, where XLA says that.
    pub op: String,
    /// Between slices, over the network of the data centre.
    pub between_slices: bool,
    /// What it gives is whole on each device, and all that uses it cuts a part out again.
    pub cut_again: bool,
}

const KINDS: [&str; 7] = [
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "ragged-all-to-all",
    "collective-permute",
    "collective-broadcast",
];

/// The collectives of a program, in its order.
pub(crate) fn transfers(format: &str, proto: &[u8]) -> Vec<Transfer> {
    let Some(outer) = Message::read(proto) else { return vec![] };
    let module = if format == "hlo_with_config" { outer.message(1) } else { outer };
    let computations: Vec<(i64, Vec<Message>)> = module.messages(3).iter().map(|c| (c.int(5), c.messages(2))).collect();
    let beside = |i: &&Message| {
        i.str(2) == "async-start"
            || i.str(1).starts_with("async-collective")
            || i.str(1).starts_with("async_collective")
    };
    let asynchronous: HashSet<i64> =
        computations.iter().flat_map(|(_, all)| all.iter().filter(beside).flat_map(|i| i.ints(38))).collect();
    let mut found = Vec::new();
    for (id, all) in &computations {
        for i in all {
            let opcode = i.str(2);
            // A pair of which the second part is told of by the first.
            let kind = opcode.strip_suffix("-start").unwrap_or(opcode);
            let notes = if opcode == "send" { noted(i) } else { vec![] };
            let note = |key: &str| notes.iter().find(|(k, _)| k == key).map(|(_, v)| v.clone());
            let between = note("_xla_megascale_transfer_type");
            if !KINDS.contains(&kind) && between.is_none() {
                continue;
            }
            let shape = match opcode == "send" {
                // A buffer, with what tells of its end.
                true => i.message(3).messages(4).into_iter().next().unwrap_or_default(),
                false => i.message(3),
            };
            let (groups, size) = match &between {
                Some(_) => (note("_xla_megascale_target").unwrap_or_default(), 0),
                None => groups(i),
            };
            found.push(Transfer {
                name: i.str(1).to_owned(),
                kind: between.as_ref().map_or(kind.to_owned(), |b| b.to_lowercase().replace('_', "-")),
                shape: shape_text(&shape, false),
                bytes: size_of(&shape),
                groups,
                size,
                algorithm: algorithm(i.bytes(43)).unwrap_or_default(),
                is_async: kind != opcode || asynchronous.contains(id) || between.is_some(),
                op: i.message(7).str(2).to_owned(),
                between_slices: between.is_some(),
                cut_again: kind == "all-gather" && is_cut(&computations, all, i.int(35)),
            });
        }
    }
    found
}

/// Whether there is something that uses a value, and each cuts a part out of it.
fn is_cut(computations: &[(i64, Vec<Message>)], within: &[Message], id: i64) -> bool {
    let mut users = within.iter().filter(|i| i.ints(36).contains(&id)).peekable();
    let one = |i: &Message| match i.str(2) {
        "dynamic-slice" => i.ints(36).first() == Some(&id),
        "bitcast" | "copy" | "reshape" | "transpose" | "convert" | "all-gather-done" | "get-tuple-element" => {
            is_cut(computations, within, i.int(35))
        }
        "fusion" => {
            let called = computations.iter().find(|(c, _)| i.ints(38).contains(c));
            let at = i.ints(36).into_iter().zip(0i64..).filter(|(operand, _)| *operand == id);
            called.is_some_and(|(_, body)| {
                at.map(|(_, n)| n).all(|n| {
                    let is = |p: &&Message| p.str(2) == "parameter" && p.int(9) == n;
                    body.iter().find(is).is_some_and(|p| is_cut(computations, body, p.int(35)))
                })
            })
        }
        _ => false,
    };
    users.peek().is_some() && users.all(one)
}

/// What a compiler's pass noted beside an instruction (`frontend_attributes`).
fn noted(i: &Message) -> Vec<(String, String)> {
    i.message(68).messages(1).iter().map(|pair| (pair.str(1).to_owned(), pair.str(2).to_owned())).collect()
}

/// How libtpu goes about it: `UniDirectionNDRingStrategy{colors:6 phases:3}`, of more that it notes.
fn algorithm(config: &[u8]) -> Option<String> {
    let config = crate::json::parse(config).ok()?;
    let config = config.get("collective_algorithm_config")?;
    let word = |key: &str| config.get(key).and_then(Value::as_str);
    let said = word("debug").or_else(|| word("emitter")).or_else(|| config.as_str())?;
    let (name, rest) = said.trim().split_once('{').unwrap_or((said.trim(), ""));
    if name.is_empty() || !name.chars().all(char::is_alphanumeric) {
        return None;
    }
    let few: Vec<&str> =
        rest.split_whitespace().take_while(|w| w.starts_with("colors:") || w.starts_with("phases:")).collect();
    Some(if few.is_empty() { name.to_owned() } else { format!("{name}{{{}}}", few.join(" ")) })
}

const TUPLE: i64 = 13;

fn size_of(shape: &Message) -> u64 {
    if shape.int(2) == TUPLE {
        return shape.messages(4).iter().map(size_of).sum();
    }
    let elements: u64 = shape.ints(3).iter().map(|&d| d.max(0) as u64).product();
    elements * element_type(shape.int(2)).1 / 8
}

fn list(items: &[i64]) -> String {
    items.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

/// The groups as XLA writes them, and how many devices one has: a list, numbers in a shape, the same with dimensions exchanged, or
/// axes of a mesh.
fn groups(i: &Message) -> (String, u64) {
    let lists = |all: &[Message]| {
        let one = |g: &Message| format!("{{{}}}", list(&g.ints(1)));
        let size = all.first().map_or(0, |g| g.ints(1).len() as u64);
        (format!("{{{}}}", all.iter().map(one).collect::<Vec<_>>().join(",")), size)
    };
    let pairs = i.messages(52);
    if !pairs.is_empty() {
        let one = |p: &Message| format!("{{{},{}}}", p.int(1), p.int(2));
        return (format!("{{{}}}", pairs.iter().map(one).collect::<Vec<_>>().join(",")), 2);
    }
    let devices = i.message(87);
    let iota = if i.has(92) { i.message(92) } else { devices.message(2) };
    if iota.int(1) > 0 {
        let (shape, order) = (iota.ints(3), iota.ints(4));
        let exchanged = order.iter().enumerate().any(|(k, &d)| k as i64 != d);
        let exchanged = if exchanged { format!("T({})", list(&order)) } else { String::new() };
        let size = iota.int(2).max(0) as u64;
        return (format!("[{},{}]<=[{}]{exchanged}", iota.int(1), iota.int(2), list(&shape)), size);
    }
    let of_mesh = if i.has(93) { i.message(93) } else { devices.message(3) };
    let (mesh, axes) = (of_mesh.message(1), of_mesh.messages(2));
    if !axes.is_empty() {
        return of_axes(&mesh, &axes);
    }
    let own = devices.messages(1);
    match own.is_empty() {
        true => lists(&i.messages(49)),
        false => lists(&own),
    }
}

/// `mesh['data'=4,'model'=2] {'model'}`; of a part of an axis `'data':(1)2`.
fn of_axes(mesh: &Message, axes: &[Message]) -> (String, u64) {
    let all: Vec<(String, u64)> =
        mesh.messages(1).iter().map(|a| (a.str(1).to_owned(), a.int(2).max(0) as u64)).collect();
    let named: Vec<String> = all.iter().map(|(name, size)| format!("'{name}'={size}")).collect();
    let mut size = 1;
    let mut one = |a: &Message| {
        let (name, whole) = all.get(a.int(1) as usize).cloned().unwrap_or_default();
        let part = a.message(2);
        match part.int(2) {
            0 => {
                size *= whole;
                format!("'{name}'")
            }
            n => {
                size *= n.max(0) as u64;
                format!("'{name}':({}){n}", part.int(1))
            }
        }
    };
    let over: Vec<String> = axes.iter().map(&mut one).collect();
    (format!("mesh[{}] {{{}}}", named.join(","), over.join(",")), size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protobuf::{field as part, int as number};

    #[test]
    fn groups_are_read_in_all_their_forms() {
        let said = |bytes: &[u8]| groups(&Message::read(bytes).unwrap());
        let list = |ids: &[u8]| part(1, ids);
        // Lists, in the field of old and in that of now.
        let two = [list(&[0, 1]), list(&[2, 3])];
        let old: Vec<u8> = two.iter().flat_map(|g| part(49, g)).collect();
        assert_eq!(said(&old), ("{{0,1},{2,3}}".into(), 2));
        let now: Vec<u8> = two.iter().flat_map(|g| part(1, g)).collect();
        assert_eq!(said(&part(87, &now)), ("{{0,1},{2,3}}".into(), 2));
        // Numbers in a shape, and exchanged.
        let iota = |shape: &[u8], order: &[u8]| {
            part(87, &part(2, &[number(1, 16), number(2, 8), part(3, shape), part(4, order)].concat()))
        };
        let alone = part(92, &[number(1, 16), number(2, 8), part(3, &[16, 8]), part(4, &[0, 1])].concat());
        assert_eq!(said(&alone), ("[16,8]<=[16,8]".into(), 8));
        assert_eq!(said(&iota(&[16, 8], &[0, 1])), ("[16,8]<=[16,8]".into(), 8));
        assert_eq!(said(&iota(&[8, 16], &[1, 0])), ("[16,8]<=[8,16]T(1,0)".into(), 8));
        // Axes of a mesh, and a part of one.
        let axis = |name: &str, size: u64| part(1, &[part(1, name.as_bytes()), number(2, size)].concat());
        let mesh = part(1, &[axis("data", 16), axis("model", 4)].concat());
        let over = |axes: &[u8]| part(93, &[mesh.clone(), axes.to_vec()].concat());
        assert_eq!(said(&over(&part(2, &[]))), ("mesh['data'=16,'model'=4] {'data'}".into(), 16));
        assert_eq!(said(&over(&part(2, &number(1, 1)))), ("mesh['data'=16,'model'=4] {'model'}".into(), 4));
        let half = part(2, &part(2, &[number(1, 2), number(2, 8)].concat()));
        assert_eq!(said(&over(&half)), ("mesh['data'=16,'model'=4] {'data':(2)8}".into(), 8));
        // Pairs of a permutation, and nothing: all.
        let pair = |a, b| part(52, &[number(1, a), number(2, b)].concat());
        assert_eq!(said(&[pair(0, 1), pair(1, 0)].concat()), ("{{0,1},{1,0}}".into(), 2));
        assert_eq!(said(&[]), ("{}".into(), 0));
    }

    #[test]
    fn algorithms_are_named() {
        let said = |debug: &str| {
            algorithm(crate::json::json!({"collective_algorithm_config": {"debug": debug}}).to_string().as_bytes())
        };
        let long = "\nUniDirectionNDRingStrategy{colors:6 phases:3 cores:{8 4 4},{8 4 4} nophase0:0}";
        assert_eq!(said(long).unwrap(), "UniDirectionNDRingStrategy{colors:6 phases:3}");
        assert_eq!(said("\ngroup_size = 16\nhas_reordering_map: true"), None);
        assert_eq!(algorithm(b"{}"), None);
    }
}
