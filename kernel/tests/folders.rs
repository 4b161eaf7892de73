//! What the kernel keeps on the disk is its user's alone, and when somebody deletes it the notebook goes on.
#[path = "protocol/client.rs"]
#[allow(dead_code)]
mod client;
#[path = "protocol/mock_engine.rs"]
#[allow(dead_code)]
mod mock_engine;
#[path = "protocol/process.rs"]
#[allow(dead_code)]
mod process;

use process::Process;
use std::fs::{Permissions, create_dir, read_dir, remove_dir_all, set_permissions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};
use xlazy_kernel::eval::install::Installation;
use xlazy_mime::{Ask, Frame, Outcome, RunCell, Tell};

const DAYS: Duration = Duration::from_secs(3 * 24 * 60 * 60);

/// Runs a command behind this one.
fn wrap(command: &mut Command, mut outer: Command) {
    outer.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    *command = outer;
}

/// Runs a command with these lines of shell before it, in the same process.
fn after(command: &mut Command, first: &str) {
    let mut outer = Command::new("sh");
    outer.arg("-c").arg(format!("{first}\nexec \"$@\"")).arg("sh");
    wrap(command, outer);
}

fn user() -> u32 {
    xlazy_mime::private::user().unwrap()
}

fn allow(path: &Path, mode: u32) {
    set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn inside(folder: &Path) -> Vec<PathBuf> {
    read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect()
}

/// The kernel's folder among temporary files.
fn folder_in(tmp: &Path) -> PathBuf {
    let all = inside(tmp);
    assert_eq!(all.len(), 1, "{all:?}");
    let meta = all[0].symlink_metadata().unwrap();
    assert_eq!((meta.mode() & 0o7777, meta.uid()), (0o700, user()));
    all[0].clone()
}

fn start() -> (Process, PathBuf) {
    let mut tmp = PathBuf::new();
    let kernel = Process::start(|command, folder| {
        command.env_remove("XDG_RUNTIME_DIR");
        tmp = folder.join("tmp");
    });
    (kernel, tmp)
}

#[test]
fn a_folder_that_somebody_has_made_beforehand_is_not_taken_over() {
    let mut tmp = PathBuf::new();
    let mut kernel = Process::start(|command, folder| {
        tmp = folder.join("tmp");
        command.env_remove("XDG_RUNTIME_DIR");
        // Whoever knows the number of the next process; the shell's becomes the kernel's.
        after(
            command,
            &format!("cd {}; mkdir xlazy-$$-0 xlazy-$$ xlazy-output-$$; chmod 777 *; cd - >/dev/null", tmp.display()),
        );
    });
    kernel.cell("struct P(u8); let p = P(2);").ok();
    assert_eq!(kernel.cell("p.0 + 1").ok(), "3");
    let (others, ours): (Vec<_>, Vec<_>) =
        inside(&tmp).into_iter().partition(|p| p.metadata().unwrap().mode() & 0o777 == 0o777);
    assert_eq!((others.len(), ours.len()), (3, 1));
    assert!(others.iter().all(|o| inside(o).is_empty()));
    assert_eq!(ours[0].metadata().unwrap().mode() & 0o777, 0o700);
}

#[test]
fn the_runtime_folder_is_used_where_there_is_one_and_it_is_closed() {
    for (mode, used) in [(0o700, true), (0o755, false)] {
        let mut folders = Vec::new();
        let mut kernel = Process::start(|command, folder| {
            let runtime = folder.join("run");
            create_dir(&runtime).unwrap();
            allow(&runtime, mode);
            command.env("XDG_RUNTIME_DIR", &runtime);
            folders = vec![runtime, folder.join("tmp")];
        });
        assert_eq!(kernel.cell("1 + 1").ok(), "2");
        if !used {
            folders.reverse();
        }
        assert!(inside(&folders[1]).is_empty());
        folder_in(&folders[0]);
        // As at the user's last logout.
        remove_dir_all(&folders[0]).unwrap();
        assert_eq!(kernel.cell("2 + 2").ok(), "4");
    }
}

#[test]
fn a_session_loads_no_object_from_a_folder_or_of_a_user_that_it_cannot_trust() {
    let install = Installation::find().unwrap_or_else(|f| panic!("{}", f.message));
    let folder = xlazy_mime::private::temporary(&std::env::temp_dir(), "xlazy-object-").unwrap();
    let (source, object) = (folder.join("cell.rs"), folder.join("cell.so"));
    std::fs::write(&source, "#[unsafe(no_mangle)] pub extern \"C-unwind\" fn cell() {}").unwrap();
    let mut rustc = Command::new(&install.toolchain.rustc);
    let compiled = rustc.args(["--edition=2024", "--crate-type=cdylib", "-o"]).args([&object, &source]).status();
    assert!(compiled.unwrap().success());
    let (mut kernel, session) = UnixStream::pair().unwrap();
    let mut child = Command::new(&install.session_exe)
        .stdin(OwnedFd::from(session))
        .env("LD_LIBRARY_PATH", install.library_path())
        .spawn()
        .unwrap();
    let mut runs = 0;
    let mut load = |object: &Path| {
        runs += 1;
        let (object, symbol) = (object.display().to_string(), "cell".into());
        Ask::Run(RunCell { run: runs, cell: 1, object, symbol, places: "cell 1".into() }).send(&mut kernel).unwrap();
        loop {
            if let Some(Tell::Done { outcome, .. }) = Tell::receive(&mut kernel).unwrap() {
                return match outcome {
                    Outcome::Failed(fault) => format!("{}: {}", fault.name, fault.message),
                    other => format!("{other:?}"),
                };
            }
        }
    };
    assert_eq!(load(&object), "Ok");
    for mode in [0o777, 0o1777, 0o770] {
        allow(&folder, mode);
        let refused = load(&object);
        assert!(refused.starts_with("LoadError: ") && refused.contains("other users may write"), "{refused}");
    }
    allow(&folder, 0o700);
    std::os::unix::fs::symlink(&object, folder.join("link.so")).unwrap();
    assert!(load(&folder.join("link.so")).contains("only a regular file"));
    std::os::unix::fs::symlink(&folder, folder.join("inner")).unwrap();
    assert!(load(&folder.join("inner/cell.so")).starts_with("LoadError"));
    nix::unistd::mkfifo(&folder.join("fifo.so"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(load(&folder.join("fifo.so")).contains("only a regular file"));
    let somebody = Some(54321);
    if chown(&folder, somebody, None).is_ok() {
        assert!(load(&object).contains("belongs to another user"));
        chown(&folder, Some(user()), None).unwrap();
        chown(&object, somebody, None).unwrap();
        assert!(load(&object).contains("belongs to another user"));
        chown(&object, Some(user()), None).unwrap();
    } else {
        println!("skipped: it takes root to make another user's files");
    }
    assert_eq!(load(&object), "Ok");
    // The folder goes, and another comes under its name.
    let aside = folder.with_extension("aside");
    std::fs::rename(&folder, &aside).unwrap();
    create_dir(&folder).unwrap();
    allow(&folder, 0o777);
    std::fs::copy(aside.join("cell.so"), &object).unwrap();
    assert!(load(&object).contains("other users may write"));
    Ask::Shutdown.send(&mut kernel).unwrap();
    assert!(child.wait().unwrap().success());
    remove_dir_all(folder).unwrap();
    remove_dir_all(aside).unwrap();
}

#[test]
fn a_cache_that_others_may_write_to_is_not_used_and_that_is_said() {
    let mut cache = PathBuf::new();
    let mut kernel = Process::start(|command, folder| {
        cache = folder.join("cache");
        for name in ["cells", "deps", "programs"] {
            create_dir(cache.join(name)).unwrap();
            allow(&cache.join(name), 0o777);
        }
        command.env_remove("XLAZY_PROGRAM_CACHE").env("XLAZY_PROGRAM_CACHE_MIN_MS", "0");
    });
    let mut said = String::new();
    for n in 0..4 {
        let done = kernel.cell(&format!("1 + {n}"));
        said += &done.stderr;
        done.ok();
    }
    assert_eq!(said.matches("compiled cells are not kept: other users may write to").count(), 1, "{said}");
    assert!(inside(&cache.join("cells")).is_empty());
    let error = kernel.cell(":dep nothing = { path = \"/nowhere\" }").err();
    assert!(error.contains("other users may write to") && error.contains("chmod go-w"), "{error}");
    // Said by the thread that would have written it, whenever that is.
    said += &kernel.cell("(tensor([1.0, 2.0]) * 3.0).sum().item()").stderr;
    let begin = Instant::now();
    while !said.contains("compiled programs are not kept in") {
        assert!(begin.elapsed() < Duration::from_secs(60), "{said}");
        said += &kernel.cell("std::thread::yield_now()").stderr;
    }
    assert!(inside(&cache.join("programs")).is_empty());
}

/// What a notebook consists of: definitions, one linked to another, variables of their types.
fn fill(kernel: &mut Process) {
    kernel.cell("struct P(u8); impl P { fn twice(&self) -> u8 { 2 * self.0 } }").ok();
    kernel.cell("fn of(n: u8) -> P { P(n) }").ok();
    kernel.cell("let p = of(4); let t = tensor([1.0, 2.0]);").ok();
}

fn works(kernel: &mut Process, n: u64) {
    assert_eq!(kernel.cell(&format!("p.twice() as u64 + {n}")).ok(), (8 + n).to_string(), "{n}: a new text");
    assert_eq!(kernel.cell("(of(1).twice(), t.sum().item())").ok(), "(2, 3.0)", "{n}: a text that is kept");
    kernel.cell(&format!("fn more{n}(p: &P) -> u64 {{ p.twice() as u64 + {n} }}")).ok();
    assert_eq!(kernel.cell(&format!("more{n}(&of(5))")).ok(), (10 + n).to_string(), "{n}: a new definition");
}

#[test]
fn the_folder_may_be_deleted_at_any_time() {
    let (mut kernel, tmp) = start();
    fill(&mut kernel);
    works(&mut kernel, 0);
    remove_dir_all(folder_in(&tmp)).unwrap();
    works(&mut kernel, 1);
    // Only some of it, as cleaners go by age.
    for file in inside(&folder_in(&tmp)).iter().filter(|f| f.is_file()).step_by(2) {
        // A compiler that works beside it takes its own away.
        assert!(std::fs::remove_file(file).is_ok() || !file.exists());
    }
    works(&mut kernel, 2);
    // By the cell itself, and then the session dies: the next one finds everything.
    let gone = format!("std::fs::remove_dir_all({:?})?;", folder_in(&tmp));
    kernel.cell(&gone).ok();
    let error = kernel.cell("let lost = 1;\nstd::process::abort()").err();
    assert!(error.contains("SessionDied") && error.contains("at line 2"), "{error}");
    kernel.cell("%recover").ok();
    works(&mut kernel, 3);
    // With everything around it; and somebody else's folder in its place is left alone.
    let place = folder_in(&tmp);
    remove_dir_all(&tmp).unwrap();
    std::fs::create_dir_all(&place).unwrap();
    allow(&place, 0o777);
    works(&mut kernel, 4);
    assert!(inside(&place).is_empty());
}

#[test]
fn the_folder_that_the_kernel_runs_in_may_be_deleted() {
    let mut own = PathBuf::new();
    let mut kernel = Process::start(|command, folder| {
        own = folder.join("own");
        create_dir(&own).unwrap();
        command.current_dir(&own);
    });
    fill(&mut kernel);
    remove_dir_all(&own).unwrap();
    (0..3).for_each(|n| works(&mut kernel, n));
    let error = kernel.cell("let x: i32 = \"s\";").err();
    assert!(error.contains("expected `i32`, found `&str`") && !error.contains("panicked"), "{error}");
    let error = kernel.cell("std::process::abort()").err();
    assert!(error.contains("SessionDied"), "{error}");
    kernel.cell("%recover").ok();
    works(&mut kernel, 3);
}

#[test]
fn what_a_killed_kernel_left_goes_when_the_next_one_starts() {
    let (mut kernel, tmp) = start();
    fill(&mut kernel);
    let left = folder_in(&tmp);
    kernel.kill();
    // A compiler that ends with it may still take its own away.
    let mut starts = 0;
    while left.exists() {
        let two_minutes_ago = SystemTime::now() - Duration::from_secs(120);
        std::fs::File::open(&left).unwrap().set_modified(two_minutes_ago).unwrap();
        let mut xlazy = Command::new(env!("CARGO_BIN_EXE_xlazy"));
        xlazy.args(["eval", "1 + 1"]).env("TMPDIR", &tmp).env_remove("XDG_RUNTIME_DIR");
        let out = xlazy.env("XLAZY_CACHE", tmp.with_file_name("cache")).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&out.stdout), "2\n", "{}", String::from_utf8_lossy(&out.stderr));
        starts += 1;
        assert!(starts < 10, "{left:?} stays");
    }
    assert_eq!(inside(&tmp), Vec::<PathBuf>::new());
}

#[test]
fn it_may_be_deleted_at_a_random_moment_of_any_cell() {
    let (mut kernel, tmp) = start();
    fill(&mut kernel);
    let mut dice = fastrand::Rng::with_seed(0x2545_f491_4f6c_dd1d);
    for n in 0..24u64 {
        // Before it, in rustc's time, in its own, after it.
        let (when, tmp) = (Duration::from_micros(dice.u64(..150_000)), &tmp);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let begin = Instant::now();
                while begin.elapsed() < when {
                    std::thread::yield_now();
                }
                inside(tmp).iter().for_each(|folder| drop(remove_dir_all(folder)));
            });
            let code = match n % 3 {
                0 => format!("fn more{n}(p: &P) -> u64 {{ p.twice() as u64 + {n} }}\nmore{n}(&p)"),
                1 => format!("p.twice() as u64 + {n}"),
                _ => format!("let v{n} = p.twice() as u64 + {n}; v{n}"),
            };
            assert_eq!(kernel.cell(&code).ok(), (8 + n).to_string(), "{code}, deleted after {when:?}");
        });
    }
    assert_eq!(kernel.cell("more21(&p) + v23").ok(), (8 + 21 + 8 + 23).to_string());
}

#[test]
fn another_kernel_does_not_sweep_the_folder_of_one_that_lives() {
    let (mut kernel, tmp) = start();
    fill(&mut kernel);
    let place = folder_in(&tmp);
    let old = |path: &Path| std::fs::File::open(path).unwrap().set_modified(SystemTime::now() - DAYS).unwrap();
    let left = tmp.join("xlazy-1-0123456789abcdef");
    create_dir(&left).unwrap();
    [&place, &left].into_iter().for_each(|p| old(p));
    // One that cannot see this one's process, where this user may make such a thing.
    let mut alone = Command::new("unshare");
    alone.args(["-rpf", "--mount-proc"]);
    let may = Command::new("unshare").args(["-rpf", "--mount-proc", "true"]).output().is_ok_and(|o| o.status.success());
    let mut xlazy = Command::new(env!("CARGO_BIN_EXE_xlazy"));
    xlazy.args(["eval", "1 + 1"]).env("TMPDIR", &tmp).env_remove("XDG_RUNTIME_DIR");
    xlazy.env("XLAZY_CACHE", tmp.with_file_name("cache"));
    match may {
        true => wrap(&mut xlazy, alone),
        false => println!("in the same PID namespace: this user may make no other"),
    }
    let out = xlazy.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&out.stdout), "2\n", "{}", String::from_utf8_lossy(&out.stderr));
    assert!(place.exists() && !left.exists());
    assert_eq!(folder_in(&tmp), place, "the other one has left nothing");
    works(&mut kernel, 1);
    assert_eq!(folder_in(&tmp), place);
}

#[test]
fn a_clean_end_leaves_no_folder_behind() {
    let tmp = xlazy_mime::private::temporary(&std::env::temp_dir(), "xlazy-end-").unwrap();
    let mut kernel = Process::start(|command, _| {
        command.env("TMPDIR", &tmp).env_remove("XDG_RUNTIME_DIR");
    });
    fill(&mut kernel);
    folder_in(&tmp);
    // Its type is asked about beside everything else, by a rustc of its own.
    kernel.cell("let v = std::collections::HashMap::from([(1, 2)]).into_iter();").ok();
    drop(kernel);
    assert_eq!(inside(&tmp), Vec::<PathBuf>::new());
    std::fs::remove_dir(tmp).unwrap();
}
