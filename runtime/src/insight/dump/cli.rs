//! `xlazy why`: what the programs that somebody's run wrote down say of its compilations.
use super::folder::{Folder, programs};
use super::kinds::{Run, run};
use super::{Dump, explain_dumps};
use crate::json::Value;
use std::path::Path;

/// What `xlazy why PATH…` says of these, as JSON. For tests.
pub fn why_json(paths: &[&str]) -> Result<String, String> {
    Ok(run(programs(paths)?).json().to_string())
}

/// What is asked for.
#[derive(Default)]
struct Wanted<'a> {
    paths: Vec<&'a str>,
    json: bool,
    html: bool,
    most: Option<usize>,
    warm_up: Option<usize>,
}

/// The exit status where there are more programs than are allowed.
const TOO_MANY: i32 = 3;

/// Says on stdout why programs were compiled again; gives the exit status.
pub fn cli_main(arguments: &[&str]) -> i32 {
    let wanted = match Wanted::of(arguments) {
        Ok(wanted) => wanted,
        Err(why) => {
            eprintln!("xlazy: {why}");
            return 2;
        }
    };
    match wanted.answer() {
        Ok(status) => status,
        Err(why) => {
            eprintln!("xlazy: {why}");
            1
        }
    }
}

impl<'a> Wanted<'a> {
    fn of(arguments: &[&'a str]) -> Result<Wanted<'a>, String> {
        let mut wanted = Wanted::default();
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            let mut number = || {
                let n = rest.next().and_then(|n| n.parse().ok());
                n.map(Some).ok_or_else(|| format!("`{word}` is followed by a number"))
            };
            match *word {
                "--json" => wanted.json = true,
                "--html" => wanted.html = true,
                "--max-programs" => wanted.most = number()?,
                "--fail-after-warmup" => wanted.warm_up = number()?,
                path => wanted.paths.push(path),
            }
        }
        if wanted.paths.is_empty() { Err("a folder or files are expected".into()) } else { Ok(wanted) }
    }

    fn answer(&self) -> Result<i32, String> {
        let folder = programs(&self.paths)?;
        if let [old, new] = &folder.programs[..]
            && self.paths.len() == 2
            && self.paths.iter().all(|p| !Path::new(p).is_dir())
        {
            // Two programs that are named are compared whatever they are called.
            let [old, new] = [old, new].map(|p| Dump { name: &p.name, text: &p.text });
            let why = explain_dumps(&old, &new)?;
            match (why, self.json) {
                (Some(why), true) => println!("{}", why.json()),
                (Some(why), false) => print!("{}", why.between_texts()),
                (None, true) => println!("{}", Value::Null),
                (None, false) => println!("The two are the same program."),
            }
            return Ok(0);
        }
        if folder.programs.is_empty() {
            return Err(nothing(&folder, &self.paths));
        }
        let run = run(folder);
        match (self.json, self.html) {
            (true, _) => println!("{}", run.json()),
            (false, true) => print!("{}", run.html()),
            (false, false) => print!("{}", run.text()),
        }
        Ok(self.judge(&run))
    }

    /// Whether there are more programs than are allowed.
    fn judge(&self, run: &Run) -> i32 {
        let mut status = 0;
        if let Some(most) = self.most.filter(|most| run.programs.len() > *most) {
            eprintln!("xlazy: {} programs were compiled, and {most} are allowed (--max-programs)", run.programs.len());
            status = TOO_MANY;
        }
        if let Some(warm_up) = self.warm_up {
            let late = run.again().filter(|p| p.told.number > warm_up as u64).count();
            if late > 0 {
                eprintln!(
                    "xlazy: behind the first {warm_up} programs {late} were compiled again (--fail-after-warmup)"
                );
                status = TOO_MANY;
            }
        }
        status
    }
}

fn nothing(folder: &Folder, paths: &[&str]) -> String {
    format!(
        "there is no program in {} ({} of other kinds). JAX writes them with JAX_DUMP_IR_TO=DIR, XLA with \
         XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\", torch_xla with XLA_SAVE_TENSORS_FILE=FILE, \
         XLA_SAVE_TENSORS_FMT=hlo, XLA_IR_DEBUG=1 and XLA_HLO_DEBUG=1, TorchTPU with TORCH_TRACE=DIR",
        paths.join(", "),
        xlazy_mime::count(folder.others, "file")
    )
}
