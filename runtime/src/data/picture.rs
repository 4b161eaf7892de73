//! Pictures on the host, and what is usually done to them before they are tensors.
use super::array::{Array, Failure};
use super::random::{below, uniform};
use crate::tensor::refuse;
use std::io::{BufReader, Read, Seek};
use std::path::Path;

/// A picture in host memory: rows from the top, `channels` bytes for each pixel (torchvision's PIL images).
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    width: usize,
    height: usize,
    channels: usize,
    pixels: Vec<u8>,
}

/// What a picture is made of.
pub(super) struct Parts<'p> {
    pub width: usize,
    pub height: usize,
    pub channels: usize,
    pub pixels: &'p [u8],
}

impl Picture {
    /// A picture of these pixels, such as another crate has decoded.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let picture = data::Picture::new(2, 1, 3, vec![255, 0, 0, 0, 255, 0]);
    /// assert_eq!(picture.horizontal_flip().to_tensor().to_vec::<f32>(), [0.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
    /// ```
    #[track_caller]
    pub fn new(width: usize, height: usize, channels: usize, pixels: Vec<u8>) -> Picture {
        if width * height * channels != pixels.len() || pixels.is_empty() {
            let why = format!("{width} x {height} pixels of {channels} bytes are not {} bytes", pixels.len());
            refuse("Picture::new", &[], why);
        }
        Picture { width, height, channels, pixels }
    }

    /// Reads a PNG, or a PPM or PGM (`P6`, `P5`) of 8 bits, whatever the file's name; as red, green and blue.
    pub fn open(path: impl AsRef<Path>) -> Result<Picture, Failure> {
        let mut file = BufReader::new(xlazy_mime::regular::open(path.as_ref())?);
        let mut begins = [0u8; 8];
        let n = file.read(&mut begins)?;
        file.rewind()?;
        match &begins[..n] {
            b"\x89PNG\r\n\x1a\n" => png(file),
            [b'P', b'5' | b'6', ..] => {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes)?;
                portable(&bytes)
            }
            [0xff, 0xd8, ..] => {
                Err("a JPEG: PNG, PPM and PGM are read here; give the folder a `decoder`, as of the crate \
                                     `image` (docs/data.md)"
                    .into())
            }
            _ => Err("neither a PNG nor a PPM or PGM; give the folder a `decoder` (docs/data.md)".into()),
        }
    }

    /// A picture of the same size with other pixels.
    pub(super) fn with(&self, pixels: Vec<u8>) -> Picture {
        Picture { pixels, ..*self }
    }

    pub(super) fn parts(&self) -> Parts<'_> {
        let Picture { width, height, channels, pixels } = self;
        Parts { width: *width, height: *height, channels: *channels, pixels }
    }

    /// The bytes of its pixels, in rows from the top.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// Width and height.
    pub fn size(&self) -> (usize, usize) {
        (self.width, self.height)
    }

    /// Bytes for each pixel.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// With its shorter side of `size` pixels, in its proportions (`torchvision.transforms.Resize`).
    pub fn resize(&self, size: usize) -> Picture {
        let (w, h) = (self.width, self.height);
        match w <= h {
            true => self.resize_to(size, size * h / w),
            false => self.resize_to(size * w / h, size),
        }
    }

    /// Of another width and height, bilinear; made smaller, each pixel is a mean of all that it covers, as PIL's is.
    pub fn resize_to(&self, width: usize, height: usize) -> Picture {
        let (width, height, c) = (width.max(1), height.max(1), self.channels);
        if (width, height) == self.size() {
            return self.clone();
        }
        let columns = weights(self.width, width);
        let mut wide = vec![0f32; self.height * width * c];
        for y in 0..self.height {
            for (x, (first, weights)) in columns.iter().enumerate() {
                for k in 0..c {
                    let at = |i: usize| f32::from(self.pixels[(y * self.width + first + i) * c + k]);
                    // PIL rounds between its two passes.
                    let sum: f32 = weights.iter().enumerate().map(|(i, w)| w * at(i)).sum();
                    wide[(y * width + x) * c + k] = (sum + 0.5).floor().clamp(0.0, 255.0);
                }
            }
        }
        let mut pixels = vec![0u8; height * width * c];
        for (y, (first, weights)) in weights(self.height, height).iter().enumerate() {
            for n in 0..width * c {
                let sum: f32 = weights.iter().enumerate().map(|(i, w)| w * wide[(first + i) * width * c + n]).sum();
                pixels[y * width * c + n] = (sum + 0.5).floor().clamp(0.0, 255.0) as u8;
            }
        }
        Picture { width, height, channels: c, pixels }
    }

    /// A part of the picture; black where it reaches beyond.
    pub fn crop(&self, top: i64, left: i64, height: usize, width: usize) -> Picture {
        let c = self.channels;
        let mut pixels = vec![0u8; height * width * c];
        for y in 0..height {
            for x in 0..width {
                let (from_y, from_x) = (top + y as i64, left + x as i64);
                if (0..self.height as i64).contains(&from_y) && (0..self.width as i64).contains(&from_x) {
                    let from = (from_y as usize * self.width + from_x as usize) * c;
                    pixels[(y * width + x) * c..][..c].copy_from_slice(&self.pixels[from..from + c]);
                }
            }
        }
        Picture { width, height, channels: c, pixels }
    }

    /// The square in the middle (`torchvision.transforms.CenterCrop`).
    pub fn center_crop(&self, size: usize) -> Picture {
        // Half to even, as Python rounds.
        let middle = |n: usize| ((n as f64 - size as f64) / 2.0).round_ties_even() as i64;
        self.crop(middle(self.height), middle(self.width), size, size)
    }

    /// A square at a place that is drawn, of the picture with `padding` black pixels around it
    /// (`torchvision.transforms.RandomCrop`).
    pub fn random_crop(&self, size: usize, padding: usize) -> Picture {
        let place = |n: usize| below((n + 2 * padding).saturating_sub(size) + 1) as i64 - padding as i64;
        let (top, left) = (place(self.height), place(self.width));
        self.crop(top, left, size, size)
    }

    /// A part that is drawn, of 8 to 100 % of the picture and between 3:4 and 4:3, as a square of `size`
    /// (`torchvision.transforms.RandomResizedCrop`).
    pub fn random_resized_crop(&self, size: usize) -> Picture {
        let area = (self.width * self.height) as f64;
        for _ in 0..10 {
            let part = area * (0.08 + 0.92 * uniform());
            let ratio = (4.0f64 / 3.0).ln() * (2.0 * uniform() - 1.0);
            let (w, h) = ((part * ratio.exp()).sqrt().round() as usize, (part / ratio.exp()).sqrt().round() as usize);
            if (1..=self.width).contains(&w) && (1..=self.height).contains(&h) {
                let (top, left) = (below(self.height - h + 1), below(self.width - w + 1));
                return self.crop(top as i64, left as i64, h, w).resize_to(size, size);
            }
        }
        self.center_crop(self.width.min(self.height)).resize_to(size, size)
    }

    /// Left and right exchanged.
    pub fn horizontal_flip(&self) -> Picture {
        let c = self.channels;
        let rows = self.pixels.chunks_exact(self.width * c);
        self.with(rows.flat_map(|row| row.chunks_exact(c).rev().flatten().copied()).collect())
    }

    /// The same, with probability `p` (`torchvision.transforms.RandomHorizontalFlip`).
    pub fn random_horizontal_flip(&self, p: f64) -> Picture {
        if uniform() < p { self.horizontal_flip() } else { self.clone() }
    }

    /// Float32 from 0 to 1, (channels, height, width) (`torchvision.transforms.ToTensor`).
    pub fn to_tensor(&self) -> Array {
        let plane = |k: usize| self.pixels.iter().skip(k).step_by(self.channels).map(|v| f32::from(*v) / 255.0);
        Array::new((0..self.channels).flat_map(plane).collect(), [self.channels, self.height, self.width])
    }
}

/// Of each pixel of a row of `to` the first pixel of a row of `from` that it is made of, and the parts of that and the next ones: a triangle, as
/// wide as two pixels of the smaller row.
fn weights(from: usize, to: usize) -> Vec<(usize, Vec<f32>)> {
    let scale = from as f64 / to as f64;
    let wide = scale.max(1.0);
    let of = |i: usize| {
        let centre = (i as f64 + 0.5) * scale;
        let first = ((centre - wide + 0.5).floor().max(0.0)) as usize;
        let end = ((centre + wide + 0.5).floor() as usize).min(from);
        let part = |k: usize| (1.0 - ((k as f64 + 0.5 - centre) / wide).abs()).max(0.0);
        let parts: Vec<f64> = (first..end).map(part).collect();
        let sum: f64 = parts.iter().sum();
        (first, parts.iter().map(|p| (p / sum) as f32).collect())
    };
    (0..to).map(of).collect()
}

fn png(file: impl std::io::BufRead + Seek) -> Result<Picture, Failure> {
    let mut decoder = png::Decoder::new(file);
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::STRIP_16);
    let mut reader = decoder.read_info()?;
    let mut bytes = vec![0; reader.output_buffer_size().ok_or("a picture too large for this machine")?];
    let info = reader.next_frame(&mut bytes)?;
    bytes.truncate(info.buffer_size());
    let (width, height) = (info.width as usize, info.height as usize);
    let given = info.color_type.samples();
    let rgb = |p: &[u8]| if given < 3 { [p[0]; 3] } else { [p[0], p[1], p[2]] };
    let pixels = bytes.chunks_exact(given).flat_map(rgb).collect();
    Ok(Picture { width, height, channels: 3, pixels })
}

fn portable(bytes: &[u8]) -> Result<Picture, Failure> {
    let mut at = 2;
    let mut number = || -> Option<usize> {
        loop {
            match bytes.get(at)? {
                b'#' => at += bytes[at..].iter().position(|b| *b == b'\n')?,
                b if b.is_ascii_whitespace() => at += 1,
                _ => break,
            }
        }
        let digits = bytes[at..].iter().take_while(|b| b.is_ascii_digit()).count();
        let number = std::str::from_utf8(&bytes[at..at + digits]).ok()?.parse().ok();
        at += digits;
        number
    };
    let header = (number(), number(), number());
    let (Some(width), Some(height), Some(255)) = header else {
        return Err("a PPM or PGM whose header is none of 8 bits".into());
    };
    let given = if bytes[1] == b'6' { 3 } else { 1 };
    let size = width.checked_mul(height).and_then(|n| n.checked_mul(given)).filter(|n| *n > 0);
    let body = size.and_then(|n| bytes.get(at + 1..at + 1 + n)).ok_or("a PPM or PGM that ends too early")?;
    let pixels = match given {
        3 => body.to_vec(),
        _ => body.iter().flat_map(|v| [*v; 3]).collect(),
    };
    Ok(Picture { width, height, channels: 3, pixels })
}

#[cfg(test)]
mod tests {
    use super::{Picture, portable, weights};

    #[test]
    fn resizing_keeps_what_is_even_and_means_what_is_covered() {
        let even = Picture::new(7, 5, 1, vec![200; 35]);
        assert_eq!(even.resize_to(3, 9).pixels, [200; 27]);
        for (from, to) in [(2, 4), (4, 2), (5, 3), (3, 3), (100, 7)] {
            for (first, parts) in weights(from, to) {
                assert!(first + parts.len() <= from && (parts.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{from} {to}");
            }
        }
        // As PIL gives them (Image.fromarray([[0, 80, 160, 240]]).resize((2, 1), BILINEAR), and to others).
        let row = Picture::new(4, 1, 1, vec![0, 80, 160, 240]);
        assert_eq!(row.resize_to(2, 1).pixels, [57, 183]);
        assert_eq!(row.resize_to(3, 1).pixels, [24, 120, 216]);
        assert_eq!(row.resize_to(7, 1).pixels, [0, 29, 74, 120, 166, 211, 240]);
        assert_eq!(row.resize_to(8, 1).pixels, [0, 20, 60, 100, 140, 180, 220, 240]);
        assert_eq!(row.resize(2).size(), (8, 2));
    }

    #[test]
    fn crops_and_flips_take_the_pixels_that_they_say() {
        let p = Picture::new(3, 2, 1, vec![1, 2, 3, 4, 5, 6]);
        assert_eq!(p.crop(-1, 1, 2, 3).pixels, [0, 0, 0, 2, 3, 0]);
        assert_eq!(p.center_crop(1).pixels, [2]);
        assert_eq!(p.horizontal_flip().pixels, [3, 2, 1, 6, 5, 4]);
        let drawn = p.random_crop(2, 1);
        assert_eq!(drawn.size(), (2, 2));
    }

    #[test]
    fn portable_pixmaps_are_read_and_refused() {
        let p = portable(b"P6 # a comment\n2 1\n255\nabcdef").unwrap();
        assert_eq!((p.size(), &*p.pixels), ((2, 1), &b"abcdef"[..]));
        assert_eq!(portable(b"P5 1 1 255 x").unwrap().pixels, b"xxx");
        for wrong in [&b"P6 2 2 255 abc"[..], b"P6 1 1 65535 abcdef", b"P6", b"P6 99999999999 99999999999 255 a"] {
            assert!(portable(wrong).is_err());
        }
    }
}
