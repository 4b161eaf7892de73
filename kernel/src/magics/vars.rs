//! `%vars`: the variables that live across cells, with type, cell and a short description.
use super::answer;
use super::magic::{Call, Magic, Reads, Scope, Takes};
use crate::engine::{Event, Reply};
use xlazy_mime::{Bundle, Cell, Table, Var, columns, escape_html};

pub const VARS: Magic = Magic {
    name: "vars",
    aliases: &["who", "whos"],
    usage: "%vars [--json]",
    summary: "lists the variables that live across cells",
    help: r#"Lists every variable that a later cell can use: its name, its type, the cell that stored it last, and what it
holds where that is cheap to say. No tensor is computed for it.

```
let x = Tensor::ones([2, 3]);
let n = 7;
%vars
```"#,
    scope: Scope::Line,
    takes: Takes::Nothing("it always lists every variable"),
    json: true,
    reads: Reads::Always,
    run,
};

fn run(call: &Call, events: &mut dyn FnMut(Event)) -> Reply {
    let vars = call.host.vars();
    answer::display(if call.json { answer::json(&as_json(&vars)) } else { table(&vars) }, events);
    Reply::Ok
}

fn table(vars: &[Var]) -> Bundle {
    if vars.is_empty() {
        return Bundle::text("No variables yet. `let x = 1;` in a cell keeps x for the cells after it.");
    }
    const HEAD: [&str; 4] = ["Name", "Type", "Cell", "Value"];
    let row = |v: &Var| {
        let cell = if v.cell == 0 { String::new() } else { v.cell.to_string() };
        [v.name.clone(), short_type(&v.type_name), cell, v.summary.replace('\n', " ")]
    };
    let rows: Vec<[String; 4]> = vars.iter().map(row).collect();
    let texts: Vec<[&str; 4]> =
        std::iter::once(HEAD).chain(rows.iter().map(|row| row.each_ref().map(String::as_str))).collect();
    let mut table = Table::new("");
    table.head(HEAD.map(|name| Cell::text(name).left()));
    for (row, var) in rows.iter().zip(vars) {
        let [name, kind, full] = [&row[0], &row[1], &var.type_name].map(|s| escape_html(s));
        table.row([
            Cell::html(format!("<code>{name}</code>")).left(),
            Cell::html(format!("<code title=\"{full}\">{kind}</code>")).left(),
            Cell::text(&row[2]),
            Cell::text(&row[3]).left(),
        ]);
    }
    Bundle::html(table.html(), columns(&texts, &[]))
}

/// A type's name without the paths: `alloc::vec::Vec<xlazy::tensor::Tensor>` is `Vec<Tensor>`.
fn short_type(full: &str) -> String {
    let mut out = String::new();
    let mut word = String::new();
    let mut chars = full.chars().peekable();
    while let Some(c) = chars.next() {
        if c.is_alphanumeric() || c == '_' {
            word.push(c);
        } else if c == ':' && chars.peek() == Some(&':') {
            chars.next();
            word.clear();
        } else {
            out.push_str(&std::mem::take(&mut word));
            out.push(c);
        }
    }
    out + &word
}

fn as_json(vars: &[Var]) -> serde_json::Value {
    let one = |v: &Var| {
        serde_json::json!({
            "name": v.name, "type": v.type_name, "cell": v.cell, "summary": v.summary, "handle": v.handle,
        })
    };
    vars.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::short_type;

    #[test]
    fn types_lose_their_paths() {
        assert_eq!(short_type("alloc::vec::Vec<xlazy::tensor::Tensor>"), "Vec<Tensor>");
        assert_eq!(short_type("(i32, &str)"), "(i32, &str)");
        assert_eq!(
            short_type("std::collections::hash::map::HashMap<alloc::string::String, [f32; 3]>"),
            "HashMap<String, [f32; 3]>"
        );
        assert_eq!(short_type("dyn core::ops::function::Fn(i32) -> i32"), "dyn Fn(i32) -> i32");
    }
}
