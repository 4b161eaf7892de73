//! `%help`: the table of magics, everything about one of them, or what is known of a name.
use super::answer;
use super::magic::{Call, Magic, Reads, Scope, Takes};
use super::nearest::nearest;
use crate::engine::{Event, Reply};
use xlazy_mime::{Bundle, Cell, Table, columns, escape_html};

pub const HELP: Magic = Magic {
    name: "help",
    aliases: &["magics", "doc"],
    usage: "%help [--json] [NAME]\n?NAME",
    summary: "lists the magics, or tells what a magic, a variable, a function or a type is",
    help: r#"Lists every magic with one line each; with a magic's name, explains that magic, and with another, tells what Shift-Tab
tells: a variable's type, a signature, documentation and an example. `?NAME` and `%doc NAME` are short for it.

```
%help
%help time
%help !
?Tensor::softmax
```"#,
    scope: Scope::Line,
    takes: Takes::Magic,
    json: true,
    reads: Reads::Always,
    run,
};

fn run(call: &Call, events: &mut dyn FnMut(Event)) -> Reply {
    let topic = call.args.trim_start_matches('%');
    let magics = match topic {
        "" => call.table,
        name => match call.table.iter().find(|m| m.is_called(name)) {
            Some(magic) => std::slice::from_ref(magic),
            None => {
                if let Some(bundle) = call.host.describe(topic) {
                    events(Event::Page(bundle));
                    return Reply::Ok;
                }
                let named = call.table.iter().filter(|m| m.name != "!");
                let names = named.flat_map(|m| [m.name].into_iter().chain(m.aliases.iter().copied()));
                let hint = nearest(name, names).map(|n| format!(" Did you mean %{n}?")).unwrap_or_default();
                return call
                    .magic
                    .misused(&format!("nothing is known about `{name}`, and there is no magic of that name.{hint}"));
            }
        },
    };
    if call.json {
        answer::display(answer::json(&as_json(magics)), events);
    } else {
        events(Event::Page(if topic.is_empty() { listing(magics) } else { page(&magics[0]) }));
    }
    Reply::Ok
}

/// How the name is written in a cell: `%vars`, `%time %%time`, `!`.
fn written(magic: &Magic) -> String {
    let name = magic.name;
    match magic.scope {
        _ if name == "!" => "!command".to_owned(),
        Scope::Line => format!("%{name}"),
        Scope::Cell => format!("%%{name}"),
        Scope::Both => format!("%{name} %%{name}"),
    }
}

fn listing(magics: &[Magic]) -> Bundle {
    let rows: Vec<[String; 2]> = magics.iter().map(|m| [format!("  {}", written(m)), m.summary.to_owned()]).collect();
    let text = format!("Magics (%help NAME explains one, and ?NAME tells what a name is):\n{}\n", columns(&rows, &[]));
    let mut table = Table::new("");
    table.head(["Magic", "What it does"]);
    for magic in magics {
        let code = format!("<code>{}</code>", escape_html(&written(magic)));
        table.row([Cell::html(code).left(), Cell::text(magic.summary).left()]);
    }
    Bundle::html(
        table.html() + "<p><code>%help NAME</code> explains one, and <code>?NAME</code> tells what a name is.</p>",
        text,
    )
}

pub fn page(magic: &Magic) -> Bundle {
    let mut text = format!("{}\n\n{}", magic.usage, magic.help);
    if !magic.aliases.is_empty() {
        let aliases: Vec<String> = magic.aliases.iter().map(|a| format!("%{a}")).collect();
        text.push_str(&format!("\n\nAlso written: {}", aliases.join(" ")));
    }
    // The fences are Markdown's; a terminal shows the example by its indent.
    let mut plain = String::new();
    let mut example = false;
    for line in text.lines() {
        match (line == "```", example) {
            (true, _) => example = !example,
            (false, true) => plain.push_str(&format!("    {line}\n")),
            (false, false) => plain.push_str(&format!("{line}\n")),
        }
    }
    Bundle::html(format!("<pre>{}</pre>", escape_html(&plain)), plain)
}

fn as_json(magics: &[Magic]) -> serde_json::Value {
    let one = |m: &Magic| {
        serde_json::json!({
            "name": m.name, "aliases": m.aliases, "usage": m.usage, "summary": m.summary, "help": m.help,
            "line": m.scope != Scope::Cell, "cell": m.scope != Scope::Line,
        })
    };
    magics.iter().map(one).collect()
}
