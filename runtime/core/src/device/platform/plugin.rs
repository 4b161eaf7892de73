//! What a platform is: its plugin, with options and environment.
use crate::{Error, Result, sys};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use xlazy_mime::private;
use xlazy_pjrt::Value;

/// What tells one platform from another.
#[derive(Clone, Copy)]
pub struct Platform {
    /// As in `PJRT_DEVICE`.
    pub name: &'static str,
    /// Where the plugin may be, in the order to look.
    pub candidates: fn() -> Vec<PathBuf>,
    pub options: fn() -> Result<Vec<(&'static str, Value)>>,
    /// Flags of XLA's that a program needs, by its text.
    pub flags: fn(&str) -> Vec<(&'static str, Value)>,
    /// A program as its compiler makes the most of it: of the same meaning, what every other place shows stays as it was written.
    pub form: fn(&str) -> Cow<str>,
    /// Why it runs no operation that is written so, where XLA says neither what nor where.
    pub lacks: fn(&str) -> Option<&'static str>,
    /// Environment that the plugin wants before it is loaded, where the user has not set it.
    pub environment: &'static [(&'static str, &'static str)],
    /// Flags of XLA's that a client of several devices wants, where the user has not set them.
    pub flags_of_several: &'static [&'static str],
    /// What to look at where the plugin is there and makes no client; may be empty.
    pub no_client: &'static str,
    /// What to do when there is no plugin.
    pub remedy: &'static str,
}

impl Platform {
    /// Sets what the plugin reads when it is loaded, for a client with these options that is one of `workers`.
    pub fn prepare(&self, options: &[(&str, Value)], workers: u32) {
        self.environment.iter().for_each(|(name, value)| sys::set_env_default(name, value));
        let counts_several = |(_, value): &(&str, Value)| matches!(value, Value::Int(n) if *n > 1);
        if workers > 1 || options.iter().any(counts_several) {
            sys::add_flags("XLA_FLAGS", self.flags_of_several);
        }
    }

    /// The plugin's words when it made no client, and what to look at.
    pub fn refused(&self, why: xlazy_pjrt::Error) -> Error {
        match self.no_client {
            "" => why.into(),
            look => Error::Usage { message: format!("{why} {look}.") },
        }
    }

    /// The plugin's library. One that a variable names is taken as it is; one that lies in a folder of plugins must be of
    /// this user, or of whoever has installed xlazy.
    pub fn library(&self) -> Result<PathBuf> {
        let candidates = (self.candidates)();
        let found = candidates.iter().find(|p| p.exists()).cloned().ok_or_else(|| {
            let looked: Vec<String> = candidates.iter().map(|p| p.display().to_string()).collect();
            let looked = if looked.is_empty() { String::new() } else { format!("; looked for {}", looked.join(", ")) };
            Error::Usage { message: format!("no PJRT plugin for {} was found{looked}. {}", self.name, self.remedy) }
        })?;
        if plugin_dirs().iter().any(|d| found.starts_with(d)) {
            let refused = |e| Error::Usage { message: format!("the PJRT plugin for {} is not loaded: {e}", self.name) };
            private::installed(&found).map_err(refused)?;
        }
        Ok(found)
    }
}

/// Folders that hold one subfolder per plugin: the installation's, or the build tree's when xlazy runs from one.
pub(super) fn plugin_dirs() -> Vec<PathBuf> {
    let var = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let mut out: Vec<PathBuf> = var("XLAZY_PLUGIN_DIR").into_iter().collect();
    out.extend(var("XLAZY_HOME").map(|h| h.join("plugins")));
    if let Ok(exe) = std::env::current_exe() {
        for dir in exe.ancestors().skip(1) {
            out.push(dir.join("plugins"));
            if dir.file_name().is_some_and(|n| n == "target") {
                out.push(dir.join("home/plugins"));
            }
        }
    }
    out.extend(var("HOME").map(|h| h.join(".local/share/xlazy/plugins")));
    out.retain(|d| d.is_dir());
    out
}

/// `relative` below each plugin folder, after the path that `variable` names.
pub(super) fn candidates(variable: &str, relative: &str) -> Vec<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from);
    named.into_iter().chain(plugin_dirs().into_iter().map(|d| d.join(relative))).collect()
}

/// An environment variable that says something.
pub(super) fn var(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from)
}

/// Files among the packages of each Python that a user may mean, and what has named that Python.
pub(super) fn in_pythons(files: &[&str]) -> Vec<(PathBuf, &'static str)> {
    let environments = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(|v| Some((var(v)?, v)));
    let python = python_prefix().map(|d| (d, "python3"));
    let user = var("HOME").map(|d| (d.join(".local"), "the user's Python packages"));
    // Where Colab has its own.
    let system = ["/usr/local", "/usr"].map(|d| (PathBuf::from(d), "the system's Python"));
    let prefixes = environments.chain(python).chain(user).chain(system);
    prefixes.flat_map(|(d, from)| in_python(&d, files).into_iter().map(move |p| (p, from))).collect()
}

fn in_python(prefix: &Path, files: &[&str]) -> Vec<PathBuf> {
    let pythons = std::fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten().map(|d| d.path());
    let pythons = pythons.filter(|d| d.file_name().is_some_and(|n| n.to_string_lossy().starts_with("python3")));
    let packages = pythons.flat_map(|d| ["site-packages", "dist-packages"].map(|p| d.join(p)));
    packages.flat_map(|d| files.iter().map(move |f| d.join(f))).filter(|p| p.is_file()).collect()
}

/// The prefix of the `python3` that a shell would run.
fn python_prefix() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let python = std::env::split_paths(&path).map(|d| d.join("python3")).find(|p| p.is_file())?;
    Some(python.parent()?.parent()?.to_owned())
}

/// What is there, each file once.
pub(super) fn there(mut places: Vec<(PathBuf, &'static str)>) -> Vec<(PathBuf, &'static str)> {
    let mut seen = std::collections::HashSet::new();
    places.retain(|(p, _)| p.canonicalize().is_ok_and(|p| seen.insert(p)));
    places
}

/// How many bits the integers of a type have; none of bools and floats.
pub(super) fn bits(ty: &str) -> Option<u32> {
    let element = ty.split_once("tensor<")?.1.split('>').next()?;
    let (_, bits) = element.rsplit('x').next()?.split_once('i')?;
    bits.parse().ok().filter(|&b| b > 1)
}
