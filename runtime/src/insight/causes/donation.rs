//! A buffer can be reused for a result, or no longer.
use super::claim::Claim;
use crate::insight::evidence::{Evidence, What};
use crate::insight::record::LeafRecord;
use crate::insight::report::{Class, Difference};

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    let (root, pairs) = e.open().find_map(|(r, what)| match what {
        What::Donation(pairs) => Some((r, pairs)),
        _ => None,
    })?;
    let leaf = |l: u32| &e.new.leaves[l as usize];
    let first = leaf(pairs[0].0);
    let say = |d: bool| if d { "reused for a result" } else { "kept" }.to_owned();
    let one = |&(l, m): &(u32, u32)| {
        let (n, o) = (leaf(l), &e.old.leaves[m as usize]);
        Difference {
            what: match &n.name {
                Some(name) => format!("the buffer of `{name}` ({})", n.ty),
                None => format!("the buffer of input {}", n.ty),
            },
            was: say(o.donate),
            now: say(n.donate),
            was_at: Some(o.at),
            now_at: Some(n.at),
        }
    };
    let holder = Some(first).filter(|l: &&LeafRecord| !l.donate).and_then(|l| l.holder.as_ref());
    let differences = pairs.iter().map(one).collect();
    // The first step's inputs were made by the user, the second's by the first.
    let warm_up = e.new.second_of(e.old) && first.donate;
    let claim = Claim::new(vec![root], Class::Aliasing, first.at, differences, fix(first.donate, holder));
    Some(Claim { warm_up, ..claim })
}

/// A buffer is given away from now on, or no longer; `holder` is a variable that keeps it.
fn fix(donated: bool, holder: Option<&String>) -> String {
    match donated {
        false if holder.is_some() => {
            let name = holder.map_or("", String::as_str);
            format!(
                "`{name}` holds the old value at every step, and copying it each time would not pay: drop `{name}` before the \
                 step, or keep what you need of it (a number, a part)"
            )
        }
        true => "nothing holds the old value any more, so its buffer is reused: expected once".into(),
        false => "something holds the old value at every step (a variable, a kept result that needs gradients), and copying it \
                  each time would not pay: drop it, or `detach()` what you keep"
            .into(),
    }
}
