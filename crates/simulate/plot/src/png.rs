//! SVG as PNG, with a font of its own: no other is looked for.

use std::sync::{Arc, OnceLock};

use resvg::{
    render as paint,
    tiny_skia::{Pixmap, Transform},
    usvg::{Options, Tree, fontdb::Database},
};
use thiserror::Error;

/// Pixels for each unit of the picture.
const SCALE: f32 = 2.0;
/// Longest side of a picture, in units: its pixels must fit into memory.
const SIDE_MAX: f32 = 8_000.0;
/// Latin, Greek and Cyrillic letters; `font/README.md` says what else.
const FONT: &[u8] = include_bytes!("../font/DejaVuSans-subset.ttf");
const FAMILY: &str = "DejaVu Sans";

/// Why a picture cannot be a PNG.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum PngError {
    /// It has more pixels than are worth drawing.
    #[error("the picture is {width:.0} by {height:.0}, too large for a PNG: name a file that ends in .svg")]
    TooLarge {
        /// In units of the picture.
        width: f32,
        /// The same.
        height: f32,
    },
    /// The renderer or the encoder refuses.
    #[error("write a PNG: {0}")]
    Encode(String),
}

/// Paints an SVG.
///
/// # Errors
/// If a side of it is too long, or it is none.
pub(crate) fn render(svg: &str) -> Result<Vec<u8>, PngError> {
    let encode = |error: &dyn std::fmt::Display| PngError::Encode(error.to_string());
    let options = Options { fontdb: fonts(), font_family: FAMILY.to_owned(), ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(|error| encode(&error))?;
    let (width, height) = (tree.size().width(), tree.size().height());
    let too_large = || PngError::TooLarge { width, height };
    if width > SIDE_MAX || height > SIDE_MAX {
        return Err(too_large());
    }
    let pixels = |side: f32| (side * SCALE).ceil() as u32;
    let mut map = Pixmap::new(pixels(width), pixels(height)).ok_or_else(too_large)?;
    paint(&tree, Transform::from_scale(SCALE, SCALE), &mut map.as_mut());
    map.encode_png().map_err(|error| encode(&error))
}

fn fonts() -> Arc<Database> {
    static FONTS: OnceLock<Arc<Database>> = OnceLock::new();
    let load = || {
        let mut fonts = Database::new();
        fonts.load_font_data(FONT.to_vec());
        fonts.set_sans_serif_family(FAMILY);
        Arc::new(fonts)
    };
    Arc::clone(FONTS.get_or_init(load))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_painted_and_differ() {
        let text = |word: &str| {
            format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"60\" height=\"20\" font-family=\"sans-serif\">\
                 <text x=\"2\" y=\"15\" font-size=\"12\">{word}</text></svg>"
            )
        };
        let painted = |word: &str| {
            let map = Pixmap::decode_png(&render(&text(word)).expect("an SVG")).expect("a PNG");
            assert_eq!((map.width(), map.height()), (120, 40));
            (map.pixels().iter().filter(|pixel| pixel.alpha() > 0).count(), map.data().to_vec())
        };
        assert_eq!(painted("").0, 0);
        let (count, long) = painted("µs × α");
        assert!(count > 100, "{count} pixels");
        assert_ne!(long, painted("us x a").1);
        assert_eq!(long, painted("µs × α").1, "the same bytes each time");
    }

    #[test]
    fn what_is_no_svg_is_refused() {
        assert!(matches!(render("<svg"), Err(PngError::Encode(_))));
    }
}
