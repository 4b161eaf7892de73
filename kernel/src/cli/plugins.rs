//! `xlazy plugins`: the PJRT plugins that are installed.
use crate::eval::install::Installation;
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub fn command() -> Command {
    Command::new("plugins")
        .about("The PJRT plugins that are installed")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("list")
                .about("List each plugin's name and library; `xlazy doctor` says whether they load")
                .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print a JSON array")),
        )
}

pub fn run(matches: &ArgMatches) -> ExitCode {
    let (_, matches) = matches.subcommand().expect("clap asks for one");
    let installation = match Installation::find() {
        Ok(installation) => installation,
        Err(failure) => return super::fail_with(&failure),
    };
    let plugins = installed(&installation.plugins_dir);
    if matches.get_flag("json") {
        let one = |p: &Plugin| serde_json::json!({"name": p.name, "library": p.library});
        super::say(&format!("{:#}", plugins.iter().map(one).collect::<serde_json::Value>()));
    } else if plugins.is_empty() {
        super::say(&format!("no plugins in {}", installation.plugins_dir.display()));
    } else {
        plugins.iter().for_each(|p| super::say(&format!("{:8}{}", p.name, p.library.display())));
    }
    ExitCode::SUCCESS
}

/// A plugin folder and the library in it that speaks PJRT.
pub struct Plugin {
    pub name: String,
    pub library: PathBuf,
}

/// The plugins below a folder, by name: each has a folder of its own, with the PJRT library beside what it needs.
pub fn installed(plugins: &Path) -> Vec<Plugin> {
    let folders = std::fs::read_dir(plugins).into_iter().flatten().flatten();
    let mut found: Vec<Plugin> = folders
        .filter_map(|folder| {
            let files = std::fs::read_dir(folder.path()).ok()?.flatten().map(|f| f.path());
            let library = files.filter(|p| is_pjrt(p)).min()?;
            Some(Plugin { name: folder.file_name().to_string_lossy().into_owned(), library })
        })
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn is_pjrt(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".so") && (name.contains("pjrt") || name == "libtpu.so")
}
