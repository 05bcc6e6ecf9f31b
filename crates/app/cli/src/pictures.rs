//! Pictures as files, by the ending of their name.

use std::path::Path;

use anyhow::Result;

use plot::Picture;

use crate::{failure::bad_input, files::write_file};

/// Whether a picture can be written under this name.
///
/// # Errors
/// Bad input if the name ends in neither `.svg` nor `.png`.
pub(crate) fn check_name(path: &Path) -> Result<()> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("svg" | "png") => Ok(()),
        _ => Err(bad_input(format!("{}: pictures are .svg or .png; name one of them", path.display()))),
    }
}

/// Writes a picture as the name's ending says.
///
/// # Errors
/// If the file cannot be written, or the name ends in neither `.svg` nor `.png`.
pub(crate) fn write_picture(path: &Path, picture: &Picture) -> Result<()> {
    check_name(path)?;
    let is_png = path.extension().is_some_and(|extension| extension == "png");
    let bytes = if is_png { picture.to_png()? } else { picture.to_svg().into_bytes() };
    write_file(path, |out| out.write_all(&bytes))
}
