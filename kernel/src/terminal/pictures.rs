//! Pictures on a terminal: by the protocol that it says it has (kitty's, sixel), else as blocks of two pixels.
use base64::prelude::{BASE64_STANDARD, Engine as _};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{LocalFlags, SetArg, tcgetattr, tcsetattr};
use nix::unistd::{getpgrp, tcgetpgrp};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Cursor, Read, Write as _};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Protocol {
    Kitty,
    Sixel,
    /// `▀` in the colours of two pixels.
    Blocks,
}

/// Names it, or turns pictures off; without it the terminal is asked.
const VARIABLE: &str = "XLAZY_PICTURES";
/// A terminal that says nothing of itself within this time has no protocol.
const PATIENCE: Duration = Duration::from_millis(300);
/// Blocks are as wide as this at most.
const COLUMNS: usize = 72;
/// And as many pixels high: two to a line.
const ROWS: usize = 200;
/// A picture of more bytes is not drawn: a few bytes of a header may ask for any number of them.
const MOST_BYTES: usize = 64 << 20;

/// What this process's terminal takes, asked once.
pub fn protocol() -> Option<Protocol> {
    static ASKED: OnceLock<Option<Protocol>> = OnceLock::new();
    *ASKED.get_or_init(|| match std::env::var(VARIABLE).as_deref() {
        Ok("kitty") => Some(Protocol::Kitty),
        Ok("sixel") => Some(Protocol::Sixel),
        Ok("blocks") => Some(Protocol::Blocks),
        Ok("off") => None,
        _ => Some(ask().map_or(Protocol::Blocks, |answer| understood(&answer))),
    })
}

/// A question that only terminals with kitty's protocol answer, and one that all do.
const QUESTION: &[u8] = b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b[c";

fn ask() -> Option<String> {
    let mut tty = File::options().read(true).write(true).open("/dev/tty").ok()?;
    // In the background, to change the terminal stops the process, and its answer is for another.
    if tcgetpgrp(&tty).ok()? != getpgrp() {
        return None;
    }
    let before = tcgetattr(&tty).ok()?;
    let mut raw = before.clone();
    raw.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
    tcsetattr(&tty, SetArg::TCSANOW, &raw).ok()?;
    let mut answer = String::new();
    if tty.write_all(QUESTION).is_ok() {
        let until = Instant::now() + PATIENCE;
        while !is_whole(&answer) {
            let left = until.saturating_duration_since(Instant::now());
            let wait = PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO);
            let mut one = [0];
            let there = poll(&mut [PollFd::new(tty.as_fd(), PollFlags::POLLIN)], wait);
            if there != Ok(1) || tty.read(&mut one).ok() != Some(1) {
                break;
            }
            answer.push(one[0] as char);
        }
    }
    let _ = tcsetattr(&tty, SetArg::TCSANOW, &before);
    Some(answer)
}

/// `ESC [ ? 62 ; 4 c`: what the terminal is, which comes last.
fn is_whole(answer: &str) -> bool {
    answer.rsplit_once("\x1b[?").is_some_and(|(_, attributes)| attributes.ends_with('c'))
}

fn understood(answer: &str) -> Protocol {
    let attributes = answer.rsplit_once("\x1b[?").map_or("", |(_, a)| a.trim_end_matches('c'));
    match attributes.split(';').any(|a| a == "4") {
        _ if answer.contains("_Gi=31;OK") => Protocol::Kitty,
        true => Protocol::Sixel,
        false => Protocol::Blocks,
    }
}

/// A PNG as what the terminal is to be sent, with the end of its last line.
pub fn drawn(png: &[u8], protocol: Protocol) -> Option<String> {
    match protocol {
        Protocol::Kitty => Some(kitty(png)),
        Protocol::Sixel => Some(sixel(&Pixels::read(png)?)),
        Protocol::Blocks => Some(blocks(&Pixels::read(png)?)),
    }
}

fn kitty(png: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(png);
    let mut out = String::new();
    let mut head = "a=T,f=100,";
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (part, more) = rest.split_at(rest.len().min(4096));
        let _ = write!(out, "\x1b_G{head}m={};{part}\x1b\\", u8::from(!more.is_empty()));
        (head, rest) = ("", more);
    }
    out + "\n"
}

struct Pixels {
    width: usize,
    height: usize,
    rgb: Vec<[u8; 3]>,
}

impl Pixels {
    fn read(png: &[u8]) -> Option<Pixels> {
        let mut decoder = png::Decoder::new(Cursor::new(png));
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info().ok()?;
        let mut bytes = vec![0; reader.output_buffer_size().filter(|size| *size <= MOST_BYTES)?];
        let info = reader.next_frame(&mut bytes).ok()?;
        let samples = info.color_type.samples();
        let rgb = bytes[..info.buffer_size()].chunks_exact(samples).map(|p| match p {
            &[grey] | &[grey, _] => [grey; 3],
            p => [p[0], p[1], p[2]],
        });
        Some(Pixels { width: info.width as usize, height: info.height as usize, rgb: rgb.collect() })
    }

    /// The mean of a part of the picture.
    fn mean(&self, columns: std::ops::Range<usize>, rows: std::ops::Range<usize>) -> [u8; 3] {
        let all = || rows.clone().flat_map(|r| columns.clone().map(move |c| (r, c)));
        let n = all().count().max(1);
        std::array::from_fn(|i| (all().map(|(r, c)| self.rgb[r * self.width + c][i] as usize).sum::<usize>() / n) as u8)
    }
}

fn blocks(picture: &Pixels) -> String {
    // What is tall gets narrower.
    let fitting = picture.width.saturating_mul(ROWS) / picture.height.max(1);
    let columns = picture.width.min(COLUMNS).min(fitting).max(1);
    let rows = (picture.height * columns / picture.width.max(1)).clamp(1, ROWS);
    let part = |i: usize, n: usize, of: usize| i * of / n..((i + 1) * of / n).max(i * of / n + 1).min(of);
    let at = |c: usize, r: usize| picture.mean(part(c, columns, picture.width), part(r, rows, picture.height));
    let mut out = String::new();
    for r in (0..rows).step_by(2) {
        for c in 0..columns {
            let [upper, lower] = [at(c, r), at(c, (r + 1).min(rows - 1))];
            let _ = write!(out, "\x1b[38;2;{};{};{}m", upper[0], upper[1], upper[2]);
            let _ = write!(out, "\x1b[48;2;{};{};{}m▀", lower[0], lower[1], lower[2]);
        }
        out.push_str("\x1b[0m\n");
    }
    out
}

/// Six levels of each colour, bands of six rows, runs counted.
fn sixel(picture: &Pixels) -> String {
    let index = |[r, g, b]: [u8; 3]| [r, g, b].into_iter().fold(0, |i, v| i * 6 + (v as usize * 5 + 127) / 255);
    let indices: Vec<usize> = picture.rgb.iter().map(|p| index(*p)).collect();
    let mut used: Vec<usize> = indices.clone();
    used.sort_unstable();
    used.dedup();
    let mut out = format!("\x1bPq\"1;1;{};{}", picture.width, picture.height);
    for i in used {
        let _ = write!(out, "#{i};2;{};{};{}", i / 36 * 20, i / 6 % 6 * 20, i % 6 * 20);
    }
    for band in indices.chunks(picture.width.max(1) * 6) {
        let mut colours = band.to_vec();
        colours.sort_unstable();
        colours.dedup();
        for colour in colours {
            let _ = write!(out, "#{colour}");
            let bits = |c: usize| {
                (0..6).filter(|r| band.get(r * picture.width + c) == Some(&colour)).map(|r| 1 << r).sum::<u8>()
            };
            let row: Vec<u8> = (0..picture.width).map(bits).collect();
            for run in row.chunk_by(|a, b| a == b) {
                let sign = (63 + run[0]) as char;
                let _ = if run.len() > 3 {
                    write!(out, "!{}{sign}", run.len())
                } else {
                    write!(out, "{}", sign.to_string().repeat(run.len()))
                };
            }
            out.push('$');
        }
        out.push('-');
    }
    out + "\x1b\\\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Red over blue, two pixels wide.
    fn picture() -> Vec<u8> {
        let mut out = Vec::new();
        let mut encoder = png::Encoder::new(&mut out, 2, 2);
        encoder.set_color(png::ColorType::Rgb);
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(&[255, 0, 0, 255, 0, 0, 0, 0, 255, 0, 0, 255]).unwrap();
        writer.finish().unwrap();
        out
    }

    #[test]
    fn pictures_are_drawn_by_each_protocol() {
        let png = picture();
        let block = "\x1b[38;2;255;0;0m\x1b[48;2;0;0;255m▀";
        assert_eq!(drawn(&png, Protocol::Blocks).unwrap(), format!("{block}{block}\x1b[0m\n"));
        let sixel = drawn(&png, Protocol::Sixel).unwrap();
        assert_eq!(sixel, "\x1bPq\"1;1;2;2#5;2;0;0;100#180;2;100;0;0#5AA$#180@@$-\x1b\\\n");
        let kitty = drawn(&png, Protocol::Kitty).unwrap();
        assert!(kitty.starts_with("\x1b_Ga=T,f=100,m=0;iVBOR") && kitty.ends_with("\x1b\\\n"));
        assert_eq!(drawn(b"no picture", Protocol::Blocks), None);
    }

    #[test]
    fn pictures_that_are_too_large_are_not_drawn() {
        let mut out = Vec::new();
        let mut encoder = png::Encoder::new(&mut out, 4096, 1 << 30);
        encoder.set_color(png::ColorType::Rgb);
        let mut writer = encoder.write_header().unwrap();
        writer.write_chunk(png::chunk::IDAT, &[0]).unwrap();
        drop(writer);
        assert_eq!(drawn(&out, Protocol::Blocks), None);
    }

    #[test]
    fn tall_pictures_are_drawn_smaller() {
        let of = |width, height| Pixels { width, height, rgb: vec![[9; 3]; width * height] };
        let size = |text: String| (text.lines().next().unwrap_or_default().matches('▀').count(), text.lines().count());
        assert_eq!(size(blocks(&of(3, 5000))), (1, 100));
        assert_eq!(size(blocks(&of(72, 800))), (18, 100));
        assert_eq!(size(blocks(&of(144, 144))), (72, 36));
    }

    #[test]
    fn what_the_terminal_says_decides() {
        assert_eq!(understood("\x1b_Gi=31;OK\x1b\\\x1b[?62;c"), Protocol::Kitty);
        assert_eq!(understood("\x1b[?62;4;22c"), Protocol::Sixel);
        assert_eq!(understood("\x1b[?64;14c"), Protocol::Blocks);
        assert_eq!(understood(""), Protocol::Blocks);
        assert!(!is_whole("\x1b_Gi=31;OK\x1b\\") && is_whole("\x1b[?1;2c"));
    }
}
