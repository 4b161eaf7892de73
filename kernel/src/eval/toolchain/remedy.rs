//! How this xlazy came to the machine, and so what makes it whole again: what pip has brought has no install.sh.
use std::path::Path;

const RUST: &str = env!("CARGO_PKG_RUST_VERSION");

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Came {
    ByPip,
    /// Unpacked, with Rust in it.
    AsArchive,
    FromSource,
}

impl Came {
    /// The xlazy that runs.
    pub fn this() -> Came {
        let exe = std::env::current_exe().and_then(|e| e.canonicalize()).unwrap_or_default();
        exe.parent().and_then(Path::parent).map_or(Came::FromSource, Came::of)
    }

    /// The one in a tree of `bin` and `lib`.
    fn of(tree: &Path) -> Came {
        let in_a_package = tree.parent().is_some_and(|package| package.join("__main__.py").is_file());
        match in_a_package {
            true => Came::ByPip,
            false if tree.join("rust").is_dir() && tree.join("lib").is_dir() => Came::AsArchive,
            false => Came::FromSource,
        }
    }

    /// What to do where a part is missing or does not fit.
    pub fn again(self) -> &'static str {
        match self {
            // The second package has the compiler.
            Came::ByPip => "run `pip install --force-reinstall xlazy xlazy-rust`, with the options of the first time",
            Came::AsArchive => "unpack the archive of xlazy again",
            Came::FromSource => "run ./install.sh again",
        }
    }

    /// What to do where the compiler is missing.
    pub fn compiler(self) -> String {
        match self {
            Came::FromSource => {
                format!(
                    "install Rust {RUST} (`rustup toolchain install {RUST}`, https://rustup.rs), then {}",
                    self.again()
                )
            }
            _ => self.again().to_owned(),
        }
    }

    /// What to do where the linker of that compiler is missing.
    pub fn linker(self) -> &'static str {
        match self {
            Came::FromSource => "rustup's toolchains bring rust-lld along",
            _ => self.again(),
        }
    }

    /// How to come by a JupyterLab.
    pub fn jupyter(self) -> &'static str {
        match self {
            Came::FromSource => "pip install jupyterlab, or run ./install.sh",
            _ => "pip install jupyterlab",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_no_install_script_is_told_of_none() {
        let folder = xlazy_mime::private::temporary(&std::env::temp_dir(), "xlazy-came-").unwrap();
        let made = |parts: &[&str]| parts.iter().for_each(|p| std::fs::create_dir_all(folder.join(p)).unwrap());
        made(&["package/tree/bin", "unpacked/bin", "unpacked/lib", "unpacked/rust/bin", "home/bin", "home/lib"]);
        std::fs::write(folder.join("package/__main__.py"), "").unwrap();
        let [pip, archive, source] = ["package/tree", "unpacked", "home"].map(|tree| Came::of(&folder.join(tree)));
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!([pip, archive, source], [Came::ByPip, Came::AsArchive, Came::FromSource]);
        let all = |came: Came| [came.again().to_owned(), came.compiler(), came.linker().into(), came.jupyter().into()];
        for text in all(pip).iter().chain(&all(archive)) {
            assert!(!text.contains("install.sh") && !text.contains("rustup"), "{text}");
        }
        assert!(pip.compiler().contains("pip install --force-reinstall xlazy xlazy-rust"));
        assert!(source.compiler().contains("rustup toolchain install") && source.compiler().contains("./install.sh"));
        assert_eq!(Came::this(), Came::FromSource, "a build tree");
    }
}
