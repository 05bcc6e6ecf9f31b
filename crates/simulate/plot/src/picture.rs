//! A picture as shapes, and its two formats.

use std::fmt::Write;

use crate::png::{self, PngError};

/// A colour: red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Colour(pub(crate) u8, pub(crate) u8, pub(crate) u8);

impl Colour {
    pub(crate) const BLACK: Self = Self(0x22, 0x22, 0x22);
    pub(crate) const GREY: Self = Self(0x77, 0x77, 0x77);
    pub(crate) const PALE: Self = Self(0xdd, 0xdd, 0xdd);
    pub(crate) const WHITE: Self = Self(0xff, 0xff, 0xff);

    /// From pale blue for 0 over yellow to dark red for 1.
    pub(crate) fn heat(share: f64) -> Self {
        const STOPS: [(f64, [f64; 3]); 4] = [
            (0.0, [205.0, 220.0, 235.0]),
            (0.4, [250.0, 220.0, 110.0]),
            (0.75, [235.0, 110.0, 50.0]),
            (1.0, [150.0, 10.0, 40.0]),
        ];
        let share = share.clamp(0.0, 1.0);
        let above = STOPS.iter().position(|(at, _)| *at >= share).unwrap_or(STOPS.len() - 1).max(1);
        let ((low, from), (high, to)) = (STOPS[above - 1], STOPS[above]);
        let part = (share - low) / (high - low);
        let mix = |index: usize| (from[index] + part * (to[index] - from[index])).round() as u8;
        Self(mix(0), mix(1), mix(2))
    }

    /// Distinct colours for series (P. Tol, "Colour schemes", 2021: bright).
    pub(crate) fn of_series(number: usize) -> Self {
        const BRIGHT: [Colour; 7] = [
            Colour(0x44, 0x77, 0xaa),
            Colour(0xee, 0x66, 0x77),
            Colour(0x22, 0x88, 0x33),
            Colour(0xcc, 0xbb, 0x44),
            Colour(0x66, 0xcc, 0xee),
            Colour(0xaa, 0x33, 0x77),
            Colour(0xbb, 0xbb, 0xbb),
        ];
        BRIGHT[number % BRIGHT.len()]
    }

    fn hex(self) -> String {
        format!("#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }
}

/// Where text stands, seen from its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    /// It begins there.
    Start,
    /// It is centred there.
    Middle,
    /// It ends there.
    End,
}

/// How text runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    /// From left to right.
    Across,
    /// From bottom to top.
    Up,
}

#[derive(Clone, Debug)]
enum Shape {
    /// `hint` is shown when a pointer rests on it.
    Line {
        points: Vec<(f64, f64)>,
        colour: Colour,
        width: f64,
        hint: String,
    },
    Box {
        at: (f64, f64),
        size: (f64, f64),
        colour: Colour,
        hint: String,
    },
    Disc {
        at: (f64, f64),
        radius: f64,
        colour: Colour,
        hint: String,
    },
    Text {
        at: (f64, f64),
        size: f64,
        colour: Colour,
        anchor: Anchor,
        run: Run,
        text: String,
    },
}

/// A picture: shapes in drawing order, `x` to the right and `y` down.
#[derive(Clone, Debug)]
pub struct Picture {
    width: f64,
    height: f64,
    shapes: Vec<Shape>,
}

impl Picture {
    /// An empty picture.
    pub(crate) fn new(width: f64, height: f64) -> Self {
        Self { width, height, shapes: Vec::new() }
    }

    /// Draws a line through points.
    pub(crate) fn line(&mut self, points: Vec<(f64, f64)>, colour: Colour, width: f64, hint: &str) {
        self.shapes.push(Shape::Line { points, colour, width, hint: hint.to_owned() });
    }

    /// Fills a box; `at` is its upper left corner.
    pub(crate) fn fill(&mut self, at: (f64, f64), size: (f64, f64), colour: Colour, hint: &str) {
        self.shapes.push(Shape::Box { at, size, colour, hint: hint.to_owned() });
    }

    /// Fills a disc.
    pub(crate) fn disc(&mut self, at: (f64, f64), radius: f64, colour: Colour, hint: &str) {
        self.shapes.push(Shape::Disc { at, radius, colour, hint: hint.to_owned() });
    }

    /// Writes text with its base line at `at`.
    pub(crate) fn text(&mut self, at: (f64, f64), size: f64, anchor: Anchor, text: impl Into<String>) {
        let (colour, run) = (Colour::BLACK, Run::Across);
        self.shapes.push(Shape::Text { at, size, colour, anchor, run, text: text.into() });
    }

    /// Writes text from bottom to top, centred.
    pub(crate) fn text_up(&mut self, at: (f64, f64), size: f64, text: impl Into<String>) {
        let (colour, anchor, run) = (Colour::BLACK, Anchor::Middle, Run::Up);
        self.shapes.push(Shape::Text { at, size, colour, anchor, run, text: text.into() });
    }

    /// The picture as SVG 1.1.
    pub fn to_svg(&self) -> String {
        let (width, height) = (self.width, self.height);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\">\n\
             <rect width=\"{width:.0}\" height=\"{height:.0}\" fill=\"#ffffff\"/>\n"
        );
        for shape in &self.shapes {
            write_shape(shape, &mut out);
        }
        out.push_str("</svg>\n");
        out
    }

    /// The picture as PNG: its SVG, two pixels a unit. The same picture gives the same bytes on every machine, since its font is
    /// part of the program.
    ///
    /// # Errors
    /// If a side of the picture is longer than 8,000 units.
    pub fn to_png(&self) -> Result<Vec<u8>, PngError> {
        png::render(&self.to_svg())
    }
}

fn write_shape(shape: &Shape, out: &mut String) {
    let close = |hint: &str, name: &str| match hint {
        "" => "/>".to_owned(),
        hint => format!("><title>{}</title></{name}>", escape(hint)),
    };
    // Writing to a string does not fail.
    let _ = match shape {
        Shape::Line { points, colour, width, hint } => {
            let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            writeln!(
                out,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\" \
                 stroke-linejoin=\"round\"{}",
                points.join(" "),
                colour.hex(),
                close(hint, "polyline")
            )
        }
        Shape::Box { at, size, colour, hint } => writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"{}",
            at.0,
            at.1,
            size.0,
            size.1,
            colour.hex(),
            close(hint, "rect")
        ),
        Shape::Disc { at, radius, colour, hint } => writeln!(
            out,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius:.1}\" fill=\"{}\" stroke=\"#777777\"{}",
            at.0,
            at.1,
            colour.hex(),
            close(hint, "circle")
        ),
        Shape::Text { at, size, colour, anchor, run, text } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let turn = match run {
                Run::Across => String::new(),
                Run::Up => format!(" transform=\"rotate(-90 {:.1} {:.1})\"", at.0, at.1),
            };
            writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"{size}\" fill=\"{}\" text-anchor=\"{anchor}\"{turn}>{}</text>",
                at.0,
                at.1,
                colour.hex(),
                escape(text)
            )
        }
    };
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // XML 1.0 has no way to write these.
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use resvg::tiny_skia::Pixmap;

    use super::*;

    #[test]
    fn text_cannot_break_out_of_the_picture() {
        let mut picture = Picture::new(100.0, 50.0);
        picture.text((1.0, 2.0), 10.0, Anchor::Start, "</text><script> & \"\u{1}");
        picture.line(vec![(0.0, 0.0), (1.0, 1.0)], Colour::BLACK, 1.0, "a -> b");
        let svg = picture.to_svg();
        assert!(!svg.contains("<script>") && svg.contains("a -&gt; b") && !svg.contains('\u{1}'), "{svg}");
    }

    #[test]
    fn a_png_has_ink_where_the_shapes_are() {
        let mut picture = Picture::new(100.0, 50.0);
        picture.fill((10.0, 10.0), (20.0, 20.0), Colour(255, 0, 0), "");
        picture.text((60.0, 30.0), 12.0, Anchor::Start, "H");
        let map = Pixmap::decode_png(&picture.to_png().expect("a PNG")).expect("which can be read");
        let at = |x: u32, y: u32| map.pixel(x, y).map(|pixel| (pixel.red(), pixel.green()));
        assert_eq!((map.width(), map.height()), (200, 100));
        assert_eq!((at(40, 40), at(100, 40)), (Some((255, 0)), Some((255, 255))));
        let dark = (100..200)
            .flat_map(|x| (0..100).map(move |y| (x, y)))
            .filter(|(x, y)| at(*x, *y).is_some_and(|(red, _)| red < 128));
        assert!(dark.count() > 20, "the letter is missing");
        assert!(Picture::new(9e3, 10.0).to_png().is_err());
    }

    #[test]
    fn heat_gets_darker() {
        let light = |share: f64| {
            let Colour(red, green, blue) = Colour::heat(share);
            u32::from(red) + u32::from(green) + u32::from(blue)
        };
        let steps: Vec<u32> = (0..=20).map(|step| light(f64::from(step) / 20.0)).collect();
        assert!(steps.windows(2).all(|pair| pair[0] >= pair[1]), "{steps:?}");
        assert_eq!(Colour::heat(-1.0), Colour::heat(0.0));
        assert_eq!(Colour::heat(2.0), Colour::heat(1.0));
    }
}
