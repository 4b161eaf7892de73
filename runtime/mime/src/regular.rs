//! Files that are opened without waiting and taken only where they are regular: a named pipe or a device in the place of a
//! file is an error, where a plain `open` would wait for the other end for ever.
use std::fs::{File, FileType, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Linux's O_NONBLOCK and O_NOCTTY, on every machine that the toolchain builds for.
const AT_ONCE: i32 = 0o4000 | 0o400;
/// What Linux answers to whoever reads a folder.
const IS_A_DIRECTORY: i32 = 21;
/// Between two looks at whether to go on.
const PIECE: usize = 4 << 20;

/// Opens a regular file with these options. On a regular file the flags that keep `open` from waiting mean nothing.
pub fn open_with(options: &mut OpenOptions, path: impl AsRef<Path>) -> Result<File> {
    let path = path.as_ref();
    // A pipe without a reader refuses a writer, with an error that names neither.
    let opened = options.custom_flags(AT_ONCE).open(path);
    let kind = match &opened {
        Ok(file) => file.metadata()?.file_type(),
        Err(_) => match std::fs::metadata(path) {
            Ok(there) => there.file_type(),
            Err(_) => return opened,
        },
    };
    check(kind).and(opened)
}

/// An error for all that is no regular file.
pub fn check(kind: FileType) -> Result<()> {
    let what = match () {
        () if kind.is_file() => return Ok(()),
        () if kind.is_dir() => return Err(Error::from_raw_os_error(IS_A_DIRECTORY)),
        () if kind.is_fifo() => "a named pipe",
        () if kind.is_socket() => "a socket",
        () if kind.is_symlink() => "a link",
        () => "a device",
    };
    Err(Error::new(ErrorKind::InvalidInput, format!("it is {what}, and only a regular file will do")))
}

/// Opens a file to read it.
pub fn open(path: impl AsRef<Path>) -> Result<File> {
    open_with(OpenOptions::new().read(true), path)
}

/// All of a file.
pub fn read(path: impl AsRef<Path>) -> Result<Vec<u8>> {
    let mut file = open(path)?;
    let mut out = Vec::new();
    out.try_reserve_exact(usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX))?;
    file.read_to_end(&mut out)?;
    Ok(out)
}

/// All of a file that is text.
pub fn read_to_string(path: impl AsRef<Path>) -> Result<String> {
    let not_text = || Error::new(ErrorKind::InvalidData, "it is no text in UTF-8");
    String::from_utf8(read(path)?).map_err(|_| not_text())
}

/// The next `length` bytes of a file, unless `stop` says so meanwhile. A file that has fewer is an error.
pub fn read_next(file: &mut File, length: usize, stop: &dyn Fn() -> bool) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    out.try_reserve_exact(length)?;
    while out.len() < length {
        if stop() {
            return Err(Error::other("it was interrupted"));
        }
        let start = out.len();
        out.resize(length.min(start + PIECE), 0);
        file.read_exact(&mut out[start..])?;
    }
    Ok(out)
}

/// Writes a file, or writes over one.
pub fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> Result<()> {
    // Emptied only once it is known to be a file.
    let mut file = open_with(OpenOptions::new().write(true).create(true).truncate(false), path)?;
    file.set_len(0)?;
    file.write_all(bytes.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_and_written_and_nothing_else_is_waited_for() {
        let dir = std::env::temp_dir().join(format!("xlazy-regular-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (file, pipe) = (dir.join("file"), dir.join("pipe"));
        write(&file, "longer than that").unwrap();
        write(&file, "text").unwrap();
        assert_eq!(read_to_string(&file).unwrap(), "text");
        let mut opened = open(&file).unwrap();
        assert_eq!(read_next(&mut opened, 3, &|| false).unwrap(), b"tex");
        assert!(read_next(&mut opened, 2, &|| false).is_err(), "there is one byte left");
        let stopped = read_next(&mut open(&file).unwrap(), 4, &|| true).unwrap_err();
        assert_eq!(stopped.to_string(), "it was interrupted");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for refused in [open(&pipe).map(drop), read(&pipe).map(drop), write(&pipe, "x")] {
            assert!(refused.unwrap_err().to_string().contains("a named pipe"));
        }
        assert!(read("/dev/zero").unwrap_err().to_string().contains("a device"));
        assert_eq!(read(&dir).unwrap_err().raw_os_error(), Some(IS_A_DIRECTORY));
        assert_eq!(read(dir.join("none")).unwrap_err().kind(), ErrorKind::NotFound);
        write(&file, [0xff]).unwrap();
        assert!(read_to_string(&file).is_err());
        std::fs::remove_dir_all(dir).unwrap();
    }
}
