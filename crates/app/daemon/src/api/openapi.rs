//! The OpenAPI document of the API.

use utoipa::OpenApi as _;

use super::routes::Paths;

/// The document, as JSON. The same program gives the same text.
pub fn document() -> String {
    let mut document = Paths::openapi();
    // The API has a version of its own, in its paths.
    document.info.version = "1".to_owned();
    document.info.license = None;
    let mut text = document.to_pretty_json().expect("the document has only keys that are text");
    text.push('\n');
    text
}
