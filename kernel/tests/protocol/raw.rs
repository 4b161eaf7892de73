//! ZMTP by hand, for those who do not keep to it.
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A test waits at most this long; only a failing one gets there.
const PATIENCE: Duration = Duration::from_secs(20);

pub fn connect(url: &str) -> UnixStream {
    let stream = UnixStream::connect(url.trim_start_matches("ipc://")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

pub fn greeting(mechanism: &str) -> Vec<u8> {
    let mut greeting = vec![0u8; 64];
    (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 3);
    greeting[12..12 + mechanism.len()].copy_from_slice(mechanism.as_bytes());
    greeting
}

pub fn frame(flags: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![flags | 2];
    out.extend_from_slice(&(body.len() as u64).to_be_bytes());
    out.extend_from_slice(body);
    out
}

pub fn message(frames: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let last = frames.len() - 1;
    frames.iter().enumerate().flat_map(|(n, body)| frame(u8::from(n < last), body.as_ref())).collect()
}

pub fn property(name: &str, value: &[u8]) -> Vec<u8> {
    [&[name.len() as u8], name.as_bytes(), &(value.len() as u32).to_be_bytes(), value].concat()
}

/// One frame: its flags and its body.
pub fn read_frame(stream: &mut UnixStream) -> std::io::Result<(u8, Vec<u8>)> {
    let mut flags = [0u8; 1];
    stream.read_exact(&mut flags)?;
    let mut length = [0u8; 8];
    stream.read_exact(if flags[0] & 2 == 0 { &mut length[7..] } else { &mut length })?;
    let mut body = vec![0; u64::from_be_bytes(length) as usize];
    stream.read_exact(&mut body)?;
    Ok((flags[0] & !2, body))
}

/// A peer without encryption that has shaken hands.
pub fn plain(url: &str, kind: &str, identity: &[u8]) -> UnixStream {
    let mut stream = connect(url);
    let properties = [property("Socket-Type", kind.as_bytes()), property("Identity", identity)].concat();
    stream.write_all(&greeting("NULL")).unwrap();
    stream.write_all(&frame(4, &[b"\x05READY", &properties[..]].concat())).unwrap();
    stream.read_exact(&mut [0; 64]).unwrap();
    assert!(read_frame(&mut stream).unwrap().1.starts_with(b"\x05READY"));
    stream
}

/// Whether the kernel hangs up, rather than to wait for more.
pub fn is_hung_up(stream: &mut UnixStream) -> bool {
    let read = stream.read_to_end(&mut Vec::new());
    !read.is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock)
}
