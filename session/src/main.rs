//! The session process: everything is in `libxlazy.so`, so that cells and the worker share one copy of it.
use std::path::Path;

fn main() {
    let mut arguments = std::env::args_os();
    // A session that runs a notebook bears its name, and what follows is for its cells.
    let name = arguments.next().and_then(|name| Some(Path::new(&name).file_name()?.to_owned()));
    if name.as_deref() != std::env::current_exe().ok().as_deref().and_then(Path::file_name) {
        return xlazy::session_main();
    }
    let arguments: Vec<String> = arguments.map(|a| a.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["--bench", "host"] => print!("{}", xlazy::bench::host().table()),
        ["--bench", "host", "--json"] => println!("{}", xlazy::bench::host().json()),
        ["--bench", "models", name, rounds] => {
            match rounds.parse().ok().and_then(|n| xlazy::bench::models::measure(name, n)) {
                Some(row) => println!("{}", row.json()),
                None => std::process::exit(2),
            }
        }
        ["--probe", library] => match xlazy::probe(library.as_ref()) {
            Ok(line) => println!("{line}"),
            Err(why) => {
                eprintln!("{why}");
                std::process::exit(1);
            }
        },
        ["--why", ref rest @ ..] => std::process::exit(xlazy::insight::why_main(rest)),
        ["--aot", ref rest @ ..] => std::process::exit(xlazy::aot::cli_main(rest)),
        ["--aot-child"] => xlazy::aot::child_main(),
        ["--worker"] => std::process::exit(xlazy::worker_main()),
        ["--places"] => std::process::exit(xlazy::aot::places_main()),
        _ => xlazy::session_main(),
    }
}
