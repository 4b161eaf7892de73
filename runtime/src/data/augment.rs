//! What is drawn for pictures so that no two epochs see the same, as torchvision's transforms of PIL images: pixels are equal to theirs.
use super::array::Array;
use super::picture::{Parts, Picture};
use super::random::{below, uniform};
use crate::tensor::refuse;
use std::ops::RangeInclusive;
use xlazy_core::ty::DType;

/// How many pixels are added on each side: of all sides, of left and right and of top and bottom, or of left, top, right and bottom.
#[derive(Clone, Copy, Debug)]
pub struct Sides([usize; 4]);

impl From<usize> for Sides {
    fn from(all: usize) -> Sides {
        Sides([all; 4])
    }
}

impl From<[usize; 2]> for Sides {
    fn from([x, y]: [usize; 2]) -> Sides {
        Sides([x, y, x, y])
    }
}

impl From<[usize; 4]> for Sides {
    fn from(sides: [usize; 4]) -> Sides {
        Sides(sides)
    }
}

impl Picture {
    /// Top and bottom exchanged.
    pub fn vertical_flip(&self) -> Picture {
        let Parts { width, channels, pixels, .. } = self.parts();
        self.with(pixels.chunks_exact(width * channels).rev().flatten().copied().collect())
    }

    /// The same, with probability `p` (`torchvision.transforms.RandomVerticalFlip`).
    pub fn random_vertical_flip(&self, p: f64) -> Picture {
        if uniform() < p { self.vertical_flip() } else { self.clone() }
    }

    /// With pixels of the value `fill` around it (`torchvision.transforms.Pad`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let picture = data::Picture::new(2, 1, 3, vec![255, 0, 0, 0, 255, 0]);
    /// assert_eq!(picture.pad(1, 0).size(), (4, 3));
    /// assert_eq!(picture.pad([1, 0, 0, 0], 9).pixels(), [9, 9, 9, 255, 0, 0, 0, 255, 0]);
    /// ```
    pub fn pad(&self, padding: impl Into<Sides>, fill: u8) -> Picture {
        let Sides([left, top, right, bottom]) = padding.into();
        let Parts { width, height, channels, pixels } = self.parts();
        let wide = width + left + right;
        let mut out = vec![fill; wide * (height + top + bottom) * channels];
        for (y, row) in pixels.chunks_exact(width * channels).enumerate() {
            out[((y + top) * wide + left) * channels..][..row.len()].copy_from_slice(row);
        }
        Picture::new(wide, height + top + bottom, channels, out)
    }

    /// How light each pixel is, in 1 channel or 3 equal ones (`torchvision.transforms.Grayscale`).
    #[track_caller]
    pub fn grayscale(&self, num_output_channels: usize) -> Picture {
        if ![1, 3].contains(&num_output_channels) {
            refuse("grayscale", &[], format!("{num_output_channels} output channels: there may be 1 or 3"));
        }
        let Parts { width, height, .. } = self.parts();
        let pixels = self.lightness().flat_map(|v| std::iter::repeat_n(v, num_output_channels)).collect();
        Picture::new(width, height, num_output_channels, pixels)
    }

    /// The same in as many channels as there are, with probability `p` (`torchvision.transforms.RandomGrayscale`).
    pub fn random_grayscale(&self, p: f64) -> Picture {
        if uniform() < p { self.grayscale(self.channels()) } else { self.clone() }
    }

    /// `factor` times as light; 0 is black (`torchvision.transforms.functional.adjust_brightness`).
    pub fn adjust_brightness(&self, factor: f64) -> Picture {
        self.blended(|_, _| 0, factor)
    }

    /// `factor` times as far from its mean grey (`torchvision.transforms.functional.adjust_contrast`).
    pub fn adjust_contrast(&self, factor: f64) -> Picture {
        let (sum, n) = self.lightness().fold((0u64, 0u64), |(sum, n), v| (sum + u64::from(v), n + 1));
        let mean = (sum as f64 / n as f64 + 0.5) as u8;
        self.blended(|_, _| mean, factor)
    }

    /// `factor` times as colourful; 0 is grey (`torchvision.transforms.functional.adjust_saturation`).
    pub fn adjust_saturation(&self, factor: f64) -> Picture {
        let grey: Vec<u8> = self.lightness().collect();
        self.blended(|i, channels| grey[i / channels], factor)
    }

    /// With its colours turned, from -0.5 to 0.5 of a whole turn (`torchvision.transforms.functional.adjust_hue`).
    #[track_caller]
    pub fn adjust_hue(&self, factor: f64) -> Picture {
        if !(-0.5..=0.5).contains(&factor) {
            refuse("adjust_hue", &[], format!("{factor} is not between -0.5 and 0.5"));
        }
        let Parts { channels, pixels, .. } = self.parts();
        if channels != 3 {
            return self.clone();
        }
        let turn = (factor * 255.0) as i64 as u8;
        let turned = |p: &[u8; 3]| {
            let [h, s, v] = hsv(*p);
            rgb([h.wrapping_add(turn), s, v])
        };
        self.with(pixels.as_chunks().0.iter().flat_map(turned).collect())
    }

    /// Brightness, contrast and saturation times what is drawn from 1 less to 1 more the number, and the hue turned by up to that
    /// much, in an order that is drawn (`torchvision.transforms.ColorJitter`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let picture = data::Picture::new(2, 1, 3, vec![255, 0, 0, 0, 255, 0]);
    /// assert_eq!(picture.color_jitter(0.4, 0.4, 0.2, 0.1).size(), (2, 1));
    /// assert_eq!(picture.color_jitter(0.0, 0.0, 0.0, 0.0), picture);
    /// ```
    #[track_caller]
    pub fn color_jitter(&self, brightness: f64, contrast: f64, saturation: f64, hue: f64) -> Picture {
        let mut order = [0, 1, 2, 3];
        (1..4).rev().for_each(|i| order.swap(i, below(i + 1)));
        let factor = |by: f64| between((1.0 - by).max(0.0)..=1.0 + by);
        let mut picture = self.clone();
        for which in order {
            picture = match which {
                0 if brightness > 0.0 => picture.adjust_brightness(factor(brightness)),
                1 if contrast > 0.0 => picture.adjust_contrast(factor(contrast)),
                2 if saturation > 0.0 => picture.adjust_saturation(factor(saturation)),
                3 if hue > 0.0 => picture.adjust_hue(between(-hue..=hue)),
                _ => picture,
            };
        }
        picture
    }

    /// Turned by so many degrees against the clock, within its frame; black where nothing comes to be
    /// (`torchvision.transforms.functional.rotate`).
    pub fn rotate(&self, angle: f64) -> Picture {
        let Parts { width, height, channels, pixels } = self.parts();
        let angle = angle.rem_euclid(360.0);
        if angle == 0.0 {
            return self.clone();
        }
        if angle == 180.0 {
            return self.vertical_flip().horizontal_flip();
        }
        let (sin, cos) = (-angle.to_radians()).sin_cos();
        let round = |v: f64| (v * 1e15).round() / 1e15;
        let (a, b) = (round(cos), round(sin));
        let (x, y) = (width as f64 / 2.0, height as f64 / 2.0);
        // PIL counts in parts of 65536, from the middle of the first pixel on.
        let fixed = |v: f64| (v * 65536.0 + 0.5).floor() as i64;
        let (c, f) = (a * -x + b * -y + x, -b * -x + a * -y + y);
        let (mut row_x, mut row_y) = (fixed(c + (a + b) * 0.5), fixed(f + (a - b) * 0.5));
        let mut out = vec![0u8; pixels.len()];
        for to_row in out.chunks_exact_mut(width * channels) {
            let (mut at_x, mut at_y) = (row_x, row_y);
            for to in to_row.chunks_exact_mut(channels) {
                let (from_x, from_y) = (at_x >> 16, at_y >> 16);
                if (0..width as i64).contains(&from_x) && (0..height as i64).contains(&from_y) {
                    let from = (from_y as usize * width + from_x as usize) * channels;
                    to.copy_from_slice(&pixels[from..from + channels]);
                }
                at_x += fixed(a);
                at_y += fixed(-b);
            }
            row_x += fixed(b);
            row_y += fixed(a);
        }
        self.with(out)
    }

    /// Turned by an angle that is drawn between `-degrees` and `degrees` (`torchvision.transforms.RandomRotation`).
    pub fn random_rotation(&self, degrees: f64) -> Picture {
        self.rotate(between(-degrees..=degrees))
    }

    /// How light each pixel is, as PIL's mode `L`.
    fn lightness(&self) -> impl Iterator<Item = u8> + '_ {
        let Parts { channels, pixels, .. } = self.parts();
        pixels.chunks_exact(channels).map(|p| match p {
            [r, g, b, ..] => {
                ((u32::from(*r) * 19595 + u32::from(*g) * 38470 + u32::from(*b) * 7471 + 0x8000) >> 16) as u8
            }
            _ => p[0],
        })
    }

    /// From another picture's values, by their place and the number of channels, so far to this one's and beyond.
    fn blended(&self, other: impl Fn(usize, usize) -> u8, factor: f64) -> Picture {
        let Parts { channels, pixels, .. } = self.parts();
        let blend = |(i, v): (usize, &u8)| {
            let other = f32::from(other(i, channels));
            (other + factor as f32 * (f32::from(*v) - other)).clamp(0.0, 255.0) as u8
        };
        self.with(pixels.iter().enumerate().map(blend).collect())
    }
}

impl Array {
    /// With probability `p` a rectangle at a place that is drawn is set to `value`: it covers a part of the picture that is drawn
    /// from `scale`, and is as many times as high as wide as is drawn from `ratio`; of a float32 array with the channels first
    /// (`torchvision.transforms.RandomErasing`, whose defaults are 0.5, 0.02 to 0.33, 0.3 to 3.3, and 0).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let picture = data::Picture::new(8, 8, 3, vec![255; 192]).to_tensor();
    /// let erased = picture.random_erasing(1.0, 0.1..=0.2, 0.5..=2.0, 0.0).to_vec::<f32>();
    /// assert!(erased.contains(&0.0) && erased.contains(&1.0));
    /// ```
    #[track_caller]
    pub fn random_erasing(self, p: f64, scale: RangeInclusive<f64>, ratio: RangeInclusive<f64>, value: f32) -> Array {
        let &[channels, height, width] = &self.shape()[..] else {
            refuse("random_erasing", &[], format!("takes channels, height and width, and not {:?}", self.shape()));
        };
        if self.dtype() != DType::F32 {
            refuse("random_erasing", &[], format!("takes float32, as `to_tensor` gives, and not {}", self.dtype()));
        }
        if uniform() >= p {
            return self;
        }
        for _ in 0..10 {
            let area = (height * width) as f64 * between(scale.clone());
            let ratio = between(ratio.start().ln()..=ratio.end().ln()).exp();
            let (h, w) = ((area * ratio).sqrt().round() as usize, (area / ratio).sqrt().round() as usize);
            if h < height && w < width {
                let (top, left) = (below(height - h + 1), below(width - w + 1));
                let mut values = self.to_vec::<f32>();
                for row in (0..channels).flat_map(|c| (top..top + h).map(move |y| (c * height + y) * width)) {
                    values[row + left..row + left + w].fill(value);
                }
                return Array::new(values, [channels, height, width]);
            }
        }
        self
    }
}

fn between(range: RangeInclusive<f64>) -> f64 {
    range.start() + (range.end() - range.start()) * uniform()
}

/// As PIL's mode `HSV`.
fn hsv([r, g, b]: [u8; 3]) -> [u8; 3] {
    let (most, least) = (r.max(g).max(b), r.min(g).min(b));
    if most == least {
        return [0, 0, most];
    }
    let apart = f32::from(most - least);
    let [rc, gc, bc] = [r, g, b].map(|v| f32::from(most - v) / apart);
    let sixths = if r == most {
        bc - gc
    } else if g == most {
        2.0 + rc - bc
    } else {
        4.0 + gc - rc
    };
    let turn = (sixths / 6.0 + 1.0) % 1.0;
    [(turn * 255.0) as u8, (apart / f32::from(most) * 255.0) as u8, most]
}

/// And back.
fn rgb([h, s, v]: [u8; 3]) -> [u8; 3] {
    let (sixths, s, light) = (f32::from(h) * 6.0 / 255.0, f32::from(s) / 255.0, f32::from(v));
    let (sixth, part) = (sixths.floor(), sixths - sixths.floor());
    let down = (light * (1.0 - s)).round() as u8;
    let falling = (light * (1.0 - s * part)).round() as u8;
    let rising = (light * (1.0 - s * (1.0 - part))).round() as u8;
    match sixth as u8 % 6 {
        0 => [v, rising, down],
        1 => [falling, v, down],
        2 => [down, v, rising],
        3 => [down, falling, v],
        4 => [rising, down, v],
        _ => [v, down, falling],
    }
}
