//! `xlazy aot` inside the session executable: the kernel's process never loads the runtime.
use super::traced::Program;
use super::{Options, Spec};
use crate::json::{Value, json};
use std::io::{Read, Write};
use xlazy_core::device::platform;
use xlazy_mime::Rich;

/// `FILE SPEC…`: compiles a StableHLO file (`-` is stdin) and prints the report.
pub fn main(arguments: &[&str]) -> i32 {
    let (file, spec) = match arguments {
        [file, spec @ ..] => (*file, spec.join(" ")),
        [] => return fail("which program?"),
    };
    let read = match file {
        "-" => {
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
        }
        _ => xlazy_mime::regular::read(file),
    };
    let text = match read {
        Ok(text) => text,
        Err(e) => return fail(&format!("{file}: {e}")),
    };
    let program = Program { text, marks: Vec::new() };
    let shown = Spec::read(&spec).and_then(|spec| Ok((spec.json, program_report(&program, &spec)?)));
    match shown {
        Ok((_, text)) => {
            let _ = writeln!(std::io::stdout(), "{}", text.trim_end());
            0
        }
        Err(e) => fail(&e.to_string()),
    }
}

fn program_report(program: &Program, spec: &Spec) -> crate::Result<String> {
    let options: &Options = &spec.options;
    if spec.compare {
        let names: Vec<&str> = spec.topologies.iter().map(String::as_str).collect();
        let table = program.compare(&names, options);
        return Ok(if spec.json { table.json() } else { table.to_string() });
    }
    if spec.roofline {
        let drawn = program.roofline(&spec.topologies[0], options)?;
        return Ok(if spec.json { drawn.json() } else { drawn.rich().plain().to_owned() });
    }
    if spec.largest {
        let found = program.largest(&spec.topologies[0], options)?;
        return Ok(if spec.json { found.json() } else { found.to_string() });
    }
    let report = program.report(&spec.topologies[0], options)?;
    Ok(if spec.json { report.json() } else { report.to_string() })
}

fn fail(message: &str) -> i32 {
    let _ = writeln!(std::io::stderr(), "xlazy: {message}");
    1
}

/// Prints every plugin that others may have brought, each platform's in use first, as a JSON list.
pub fn places_main() -> i32 {
    let of = |platform: &str, places: Vec<(std::path::PathBuf, &str)>| -> Vec<Value> {
        let one = |(path, from): &(std::path::PathBuf, &str)| json!({ "platform": platform, "library": path.display().to_string(), "from": from });
        places.iter().map(one).collect()
    };
    let found = [of("TPU", platform::tpu_places()), of("CUDA", platform::cuda_places())].concat();
    let _ = writeln!(std::io::stdout(), "{}", Value::Array(found));
    0
}
