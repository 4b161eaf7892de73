//! `%pod`: the workers that programs run on.
use crate::json::{self, json};
use crate::{Error, Result};
use std::sync::{Mutex, PoisonError};
use xlazy_core::device::{Worker, check_pod, client, client_if_open, pod_workers};
use xlazy_core::run::is_over;
use xlazy_core::text::location;
use xlazy_mime::{Bundle, Cell, Table, columns, units};

/// How the last start has ended: `None` while it goes on.
static OPENED: Mutex<Option<Result<()>>> = Mutex::new(None);

/// `check …`, `open`, `opened`, `over`, `--json`, or nothing to see the workers.
pub(crate) fn answer(args: &str) -> Result<Bundle> {
    let (verb, rest) = args.split_once(char::is_whitespace).unwrap_or((args, ""));
    match verb {
        "check" => {
            check_pod(rest)?;
            Ok(Bundle::default())
        }
        "open" => {
            let opened = || OPENED.lock().unwrap_or_else(PoisonError::into_inner);
            *opened() = None;
            let open = move || {
                let result = client().map(drop);
                *opened() = Some(result);
            };
            let thread = std::thread::Builder::new().name("open".into()).spawn(open);
            thread.map_err(|e| Error::Usage { message: format!("no thread for a pod: {e}") })?;
            Ok(Bundle::default())
        }
        "opened" => match &*OPENED.lock().unwrap_or_else(PoisonError::into_inner) {
            None => Ok(Bundle::text("no")),
            Some(Ok(())) => Ok(Bundle::text("yes")),
            Some(Err(e)) => Err(Error::Usage { message: e.to_string() }),
        },
        "over" => Ok(Bundle::text(if is_over() { "yes" } else { "no" })),
        "--json" => Ok(json::bundle(pod_workers().iter().map(Row::json).collect::<json::Value>())),
        _ => Ok(bundle(&pod_workers())),
    }
}

trait Row {
    fn json(&self) -> json::Value;
    fn cells(&self) -> [String; 6];
}

impl Row for Worker {
    fn json(&self) -> json::Value {
        let ([told, started, ended], [compiled, loaded]) = (self.programs, self.made);
        json!({
            "worker": self.name,
            "process": self.process,
            "devices": self.devices,
            "kind": self.kind,
            "in_use_bytes": self.memory,
            "programs": { "told": told, "started": started, "ended": ended, "compiled": compiled, "loaded": loaded },
            "last_program": self.last_program.map(location),
            "trouble": self.trouble,
        })
    }

    fn cells(&self) -> [String; 6] {
        let memory = self.memory.map_or_else(|| "?".into(), units::bytes);
        [
            self.name.clone(),
            devices(&self.devices),
            self.kind.clone(),
            memory,
            progress(self.programs),
            self.last_program.map(location).unwrap_or_default(),
        ]
    }
}

/// `cpu:0 … cpu:3`
fn devices(names: &[String]) -> String {
    match names {
        [] => "none".into(),
        [first, .., last] if names.len() > 2 => format!("{first} … {last}"),
        few => few.join(", "),
    }
}

/// What has ended of what was told, and a bar where that is not all.
fn progress([told, _, ended]: [u64; 3]) -> String {
    const WIDTH: u64 = 10;
    match ended < told {
        false => format!("{ended}"),
        true => {
            // Of what may be under way at once; what ended long ago is no measure.
            let (left, of) = (told - ended, (told - ended).max(WIDTH));
            let full = (WIDTH - left * WIDTH / of) as usize;
            format!("{ended} of {told} {}{}", "█".repeat(full), "░".repeat(WIDTH as usize - full))
        }
    }
}

const HEADS: [&str; 6] = ["worker", "devices", "kind", "memory", "programs", "last program"];

fn bundle(workers: &[Worker]) -> Bundle {
    if workers.is_empty() {
        let text = match (std::env::var("XLAZY_POD").is_ok_and(|p| !p.is_empty()), client_if_open()) {
            (true, _) => "the pod is started with the first tensor that is run",
            (false, Some(_)) => "programs run on this machine: there is no pod",
            (false, None) => "there is no pod, and nothing has run yet",
        };
        return Bundle::text(text);
    }
    let rows: Vec<[String; 6]> = workers.iter().map(Row::cells).collect();
    let lines: Vec<[String; 6]> = std::iter::once(HEADS.map(str::to_owned)).chain(rows.iter().cloned()).collect();
    let mut text = columns(&lines, &[3]);
    let mut html = Table::new("font-size:.92em");
    html.head(HEADS.map(|head| Cell::text(head).left()));
    for row in &rows {
        html.row(row.iter().map(|c| Cell::text(c).left()));
    }
    let troubles: std::collections::BTreeSet<&str> = workers.iter().filter_map(|w| w.trouble.as_deref()).collect();
    for trouble in &troubles {
        text += &format!("\n{trouble}");
    }
    let told: String = troubles.iter().map(|t| format!("<p>{}</p>", xlazy_mime::escape_html(t))).collect();
    Bundle::html(format!("<div>{}{told}</div>", html.html()), text.trim_end())
}
